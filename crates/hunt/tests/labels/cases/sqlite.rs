//! SQLite, with both of its journals.

use super::Where::{Order, Step};
use super::{Labelled, PLAIN};
use crate::falsify::Change;

const BOTH: Labelled = Labelled { engines: "sqlite", level: "serializable", ..PLAIN };
const WAL: Labelled = Labelled { engines: "sqlite+wal", ..BOTH };

pub const CASES: &[Labelled] = &[
    Labelled {
        name: "the second writer waits for the first",
        shows: &[("S1", Step("s1.2")), ("S1", Step("s2.2")), ("S1", Order)],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> update t set v = v + 1 where id = 2;
            s1> commit;
            s2> commit;",
        ..BOTH
    },
    Labelled {
        name: "a transaction keeps what its first statement saw",
        shows: &[("S2", Step("s1.2")), ("S2", Step("s1.3"))],
        steps: "s1> begin;
            s1> select v from t where id = 1;
            s2> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s1> commit;",
        ..WAL
    },
    Labelled {
        name: "a read before any commit sees the initial rows",
        shows: &[("S2", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> select v from t where id = 1;
            s2> commit;
            s1> commit;",
        ..BOTH
    },
    Labelled {
        name: "a transaction with an old snapshot cannot write",
        shows: &[("S3", Step("s2.3"))],
        steps: "s2> begin;
            s2> select v from t where id = 1;
            s1> update t set v = 11 where id = 1;
            s2> update t set v = v + 1 where id = 2;
            s2> rollback;",
        ..WAL
    },
    Labelled {
        name: "a reader keeps its snapshot during a concurrent commit",
        steps: "s1> begin;
            s2> begin;
            s1> select v from t where id = 1;
            s2> update t set v = 11 where id = 1;
            s2> commit;
            s1> select v from t where id = 1;
            s1> commit;",
        ..BOTH
    },
    Labelled {
        name: "a key that is taken fails its statement, and REPLACE deletes the row",
        shows: &[("S6", Step("s1.2")), ("S6", Step("s1.3"))],
        steps: "s1> begin;
            s1> insert into t (id, v) values (1, 5);
            s1> insert or replace into t (id, v) values (1, 6);
            s1> select id, v from t;
            s2> select id, v from t;
            s1> commit;",
        ..BOTH
    },
    Labelled {
        name: "an upsert changes the row that has its key",
        shows: &[("S7", Step("s1.2"))],
        steps: "s1> begin;
            s1> insert into t (id, v) values (1, 5) on conflict (id) do update set v = t.v + 1;
            s2> select v from t where id = 1;
            s1> commit;",
        ..BOTH
    },
    Labelled {
        name: "a row with children cannot be deleted",
        shows: &[("S8", Step("s1.2")), ("S8", Step("s1.3"))],
        setup: "create table p (id int primary key);
            create table c (id int primary key, p int references p (id));
            insert into p values (1), (2);",
        steps: "s1> begin;
            s1> insert into c (id, p) values (1, 1);
            s1> delete from p where id = 1;
            s1> commit;",
        ..BOTH
    },
    Labelled {
        name: "a transaction sees what it wrote and others do not",
        shows: &[("S9", Step("s1.3")), ("S2", Step("s2.1"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s2> select v from t where id = 1;
            s1> commit;",
        ..BOTH
    },
    Labelled {
        name: "a savepoint takes back what came after it",
        shows: &[("S10", Step("s1.5"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s1> savepoint a;
            s1> update t set v = 12 where id = 1;
            s1> rollback to savepoint a;
            s1> select v from t where id = 1;
            s1> commit;",
        breaks: &[("S10", Step("s1.6"), Change::AnotherValueRead)],
        ..BOTH
    },
    Labelled {
        name: "what is rolled back leaves nothing behind",
        shows: &[("S11", Step("s1.3"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s1> rollback;
            s2> select v from t where id = 1;",
        ..BOTH
    },
];
