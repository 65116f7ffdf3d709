//! DuckDB: snapshots, and write conflicts per column.

use super::Where::Step;
use super::{Labelled, PLAIN};
use crate::falsify::Change;
use isolde_model::history::ErrorClass;

const SNAPSHOT: Labelled = Labelled { engines: "duckdb", level: "snapshot", ..PLAIN };

const THREE_COLUMNS: &str = "create table t (id int, v int, w int);
    insert into t values (1, 10, 100), (2, 20, 200);";

const FAMILY: &str = "create table p (id int primary key, v int);
    create table c (id int primary key, p int references p (id));
    insert into p values (1, 0), (2, 0);
    insert into c values (1, 1);";

pub const CASES: &[Labelled] = &[
    Labelled {
        name: "a transaction keeps the snapshot of its first statement on a table",
        shows: &[("D1", Step("s1.2")), ("D1", Step("s1.3"))],
        steps: "s1> begin;
            s2> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s2> update t set v = 12 where id = 1;
            s1> select v from t where id = 1;
            s1> commit;",
        ..SNAPSHOT
    },
    Labelled {
        name: "an update of a value with an uncommitted change fails at once",
        shows: &[("D2", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> update t set v = v + 1 where id = 1;
            s1> commit;
            s2> rollback;",
        ..SNAPSHOT
    },
    Labelled {
        name: "an update of a value that changed since the snapshot fails",
        shows: &[("D2", Step("s2.3"))],
        steps: "s2> begin;
            s2> select v from t where id = 2;
            s1> update t set v = 11 where id = 1;
            s2> update t set v = 12 where id = 1;
            s2> rollback;",
        ..SNAPSHOT
    },
    Labelled {
        name: "a delete of a row with an uncommitted delete fails at once",
        shows: &[("D2", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> delete from t where id = 1;
            s2> delete from t where id = 1;
            s1> commit;
            s2> rollback;",
        ..SNAPSHOT
    },
    Labelled {
        name: "a failed transaction keeps its writes until its rollback",
        shows: &[("D2", Step("s3.1"))],
        setup: "create table t (id int, v int);
            insert into t values (1, 10), (2, 20);",
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> update t set v = 21 where id = 2;
            s2> update t set v = 12 where id = 1;
            s3> update t set v = 22 where id = 2;
            s2> rollback;
            s3> update t set v = 23 where id = 2;
            s1> commit;",
        ..SNAPSHOT
    },
    Labelled {
        name: "two transactions change different columns of a row",
        shows: &[("D2c", Step("s2.2"))],
        setup: THREE_COLUMNS,
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> update t set w = 101 where id = 1;
            s2> select v, w from t where id = 1;
            s1> commit;
            s2> commit;
            s3> select v, w from t where id = 1;",
        ..SNAPSHOT
    },
    Labelled {
        name: "the first to change another column commits last",
        shows: &[("D2c", Step("s2.1"))],
        setup: THREE_COLUMNS,
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s2> update t set w = 101 where id = 1;
            s1> select v, w from t where id = 1;
            s1> commit;",
        ..SNAPSHOT
    },
    Labelled {
        name: "one transaction deletes a row and another changes it, and one of them rolls back",
        setup: THREE_COLUMNS,
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> delete from t where id = 1;
            s1> rollback;
            s2> commit;",
        open: &[(
            Some("s2.2"),
            Change::ErrorAdded(ErrorClass::WriteConflict),
            "a delete of a changed row may fail at once or at the COMMIT",
        )],
        ..SNAPSHOT
    },
    Labelled {
        name: "a key inserted since the snapshot is a duplicate",
        shows: &[("D3", Step("s2.3"))],
        steps: "s2> begin;
            s2> select v from t where id = 1;
            s1> insert into t (id, v) values (3, 30);
            s2> insert into t (id, v) values (3, 31);
            s2> rollback;",
        ..SNAPSHOT
    },
    Labelled {
        name: "a key that an open transaction deletes is a duplicate",
        shows: &[("D3", Step("s2.1"))],
        steps: "s1> begin;
            s1> delete from t where id = 1;
            s2> insert into t (id, v) values (1, 31);
            s1> rollback;",
        ..SNAPSHOT
    },
    Labelled {
        name: "two transactions insert a key, and the second COMMIT fails",
        shows: &[("D3", Step("s2.3"))],
        steps: "s1> begin;
            s2> begin;
            s1> insert into t (id, v) values (3, 30);
            s2> insert into t (id, v) values (3, 31);
            s1> commit;
            s2> commit;",
        ..SNAPSHOT
    },
    Labelled {
        name: "a row whose key is updated is found under the new key",
        shows: &[("D9", Step("s1.2"))],
        steps: "s1> begin;
            s1> update t set id = id + 10 where id = 1;
            s1> insert into t (id, v) values (1, 5);
            s1> select id, v from t;
            s2> select id, v from t;
            s1> commit;",
        ..SNAPSHOT
    },
    Labelled {
        name: "a key with children cannot be deleted, though this transaction has deleted them",
        shows: &[("D4", Step("s1.3"))],
        setup: FAMILY,
        steps: "s1> begin;
            s1> delete from c where p = 1;
            s1> delete from p where id = 1;
            s1> rollback;",
        ..SNAPSHOT
    },
    Labelled {
        name: "a child finds a parent that its snapshot does not show, and needs one",
        shows: &[("D4", Step("s2.3")), ("D4", Step("s2.4"))],
        setup: FAMILY,
        steps: "s2> begin;
            s2> select id, p from c;
            s1> insert into p (id, v) values (3, 0);
            s2> insert into c (id, p) values (2, 3);
            s2> insert into c (id, p) values (3, 4);
            s2> rollback;",
        ..SNAPSHOT
    },
    Labelled {
        name: "a transaction sees its own writes and others do not",
        shows: &[("D5", Step("s1.3")), ("D1", Step("s2.1"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s2> select v from t where id = 1;
            s1> commit;",
        ..SNAPSHOT
    },
    Labelled {
        name: "a rolled back transaction leaves no changes",
        shows: &[("D6", Step("s1.3"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s1> rollback;
            s2> select v from t where id = 1;",
        ..SNAPSHOT
    },
    Labelled {
        name: "a row that breaks NOT NULL or CHECK fails",
        shows: &[("D7", Step("s1.1")), ("D7", Step("s1.2"))],
        setup: "create table t (id int not null, v int, check (v < 50));
            insert into t values (1, 10), (2, 20);",
        steps: "s1> insert into t (id, v) values (null, 5);
            s1> update t set v = v + 35;
            s2> select id, v from t;",
        ..SNAPSHOT
    },
    Labelled {
        name: "an upsert acts on the row that its snapshot shows",
        shows: &[("D8", Step("s1.2"))],
        steps: "s1> begin;
            s1> insert into t (id, v) values (1, 5) on conflict (id) do update set v = t.v + 1;
            s2> select v from t where id = 1;
            s1> commit;",
        ..SNAPSHOT
    },
    Labelled {
        name: "an upsert fails on a row that its snapshot does not show",
        shows: &[("D8", Step("s2.3"))],
        steps: "s2> begin;
            s2> select v from t where id = 1;
            s1> insert into t (id, v) values (3, 30);
            s2> insert into t (id, v) values (3, 5) on conflict (id) do update set v = t.v + 1;
            s2> rollback;",
        ..SNAPSHOT
    },
];
