//! Dolt: isolated transactions, merged when they commit.

use super::Where::{SomeStep, Step};
use super::{Labelled, PLAIN};
use crate::falsify::Change;

const ANY: Labelled = Labelled { engines: "dolt", level: "repeatable read", ..PLAIN };
/// The level has no effect.
const LOWEST: Labelled = Labelled { level: "read uncommitted", ..ANY };
const HIGHEST: Labelled = Labelled { level: "serializable", ..ANY };

const THREE_COLUMNS: &str = "create table t (id int primary key, v int, w int);
    insert into t values (1, 10, 100), (2, 20, 200);";

const UNIQUE: &str = "create table t (id int primary key, v int, unique key (v));
    insert into t values (1, 10), (2, 20);";

const FAMILY: &str = "create table p (id int primary key, v int);
    create table c (id int primary key, p int, foreign key (p) references p (id));
    insert into p values (1, 0), (2, 0);
    insert into c values (1, 1);";

pub const CASES: &[Labelled] = &[
    Labelled {
        name: "a transaction keeps the snapshot of its begin",
        shows: &[("O1", Step("s1.2")), ("O1", Step("s1.3"))],
        steps: "s1> begin;
            s2> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s2> update t set v = 12 where id = 1;
            s1> select v from t where id = 1 for update;
            s1> commit;",
        ..LOWEST
    },
    Labelled {
        name: "the second COMMIT of a value fails",
        shows: &[("O9", Step("s2.2")), ("O2", Step("s2.3"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> update t set v = 12 where id = 1;
            s1> commit;
            s2> commit;",
        breaks: &[("O2", SomeStep, Change::AnotherValueLeft)],
        ..ANY
    },
    Labelled {
        name: "one transaction changes a row and another deletes it",
        shows: &[("O2", Step("s2.3"))],
        steps: "s1> begin;
            s2> begin;
            s1> delete from t where id = 1;
            s2> update t set v = 12 where id = 1;
            s1> commit;
            s2> commit;",
        ..HIGHEST
    },
    Labelled {
        name: "two rows with one key",
        shows: &[("O2", Step("s2.3"))],
        steps: "s1> begin;
            s2> begin;
            s1> insert into t (id, v) values (3, 30);
            s2> insert into t (id, v) values (3, 31);
            s1> commit;
            s2> commit;",
        ..ANY
    },
    Labelled {
        name: "without a key equal rows are counted",
        shows: &[("O2", Step("s2.3"))],
        setup: "create table t (id int, v int);
            insert into t values (1, 10), (2, 20);",
        steps: "s1> begin;
            s2> begin;
            s1> delete from t where id = 1;
            s2> delete from t;
            s1> commit;
            s2> commit;",
        ..ANY
    },
    Labelled {
        name: "two transactions change different cells of a row",
        shows: &[("O2c", Step("s2.4"))],
        setup: THREE_COLUMNS,
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> update t set w = 101 where id = 1;
            s1> commit;
            s2> select v, w from t where id = 1;
            s2> commit;
            s3> select v, w from t where id = 1;",
        breaks: &[("O2c", Step("s3.1"), Change::AnotherValueRead)],
        ..ANY
    },
    Labelled {
        name: "two increments to the same value count as one",
        shows: &[("O2c", Step("s2.3"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = v + 1 where id = 1;
            s2> update t set v = v + 1 where id = 1;
            s1> commit;
            s2> commit;",
        ..HIGHEST
    },
    Labelled {
        name: "a duplicate key fails its statement, and one in the merge fails the COMMIT",
        shows: &[("O3", Step("s2.2")), ("O3", Step("s2.4"))],
        setup: UNIQUE,
        steps: "s1> begin;
            s2> begin;
            s2> insert into t (id, v) values (3, 10);
            s1> update t set v = 30 where id = 1;
            s2> update t set v = 30 where id = 2;
            s1> commit;
            s2> commit;",
        ..ANY
    },
    Labelled {
        name: "a row with children cannot be deleted, and the merge checks foreign keys",
        shows: &[("O4", Step("s1.2")), ("O4", Step("s2.3"))],
        setup: FAMILY,
        steps: "s1> begin;
            s2> begin;
            s1> delete from p where id = 1;
            s1> delete from p where id = 2;
            s2> insert into c (id, p) values (2, 2);
            s1> commit;
            s2> commit;",
        ..ANY
    },
    Labelled {
        name: "a transaction sees its own writes and others do not",
        shows: &[("O5", Step("s1.3")), ("O1", Step("s2.1"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s2> select v from t where id = 1;
            s1> commit;",
        ..ANY
    },
    Labelled {
        name: "a rolled back transaction leaves no changes",
        shows: &[("O6", Step("s1.5")), ("O6", Step("s1.6"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s1> savepoint a;
            s1> update t set v = 12 where id = 1;
            s1> rollback to savepoint a;
            s1> rollback;
            s2> select v from t where id = 1;",
        ..ANY
    },
    Labelled {
        name: "a row that breaks NOT NULL or CHECK fails, and so does a merged one",
        shows: &[("O7", Step("s1.2")), ("O7", Step("s2.3"))],
        setup: "create table t (id int primary key, v int not null, w int, check (v + w < 50));
            insert into t values (1, 10, 10), (2, 20, 10);",
        steps: "s1> begin;
            s1> insert into t (id, v, w) values (3, null, 1);
            s2> begin;
            s1> update t set v = 35 where id = 1;
            s2> update t set w = 35 where id = 1;
            s1> commit;
            s2> commit;",
        ..ANY
    },
    Labelled {
        name: "upserts act on the rows that the snapshot shows",
        shows: &[("O8", Step("s1.2")), ("O8", Step("s1.3"))],
        steps: "s1> begin;
            s1> insert into t (id, v) values (1, 5) on duplicate key update v = v + 1;
            s1> replace into t (id, v) values (2, 5);
            s1> select id, v from t;
            s2> select id, v from t;
            s1> commit;",
        ..ANY
    },
];
