//! TiDB: pessimistic transactions, optimistic ones, and both in one run.

use super::Where::{SomeStep, Step};
use super::{Labelled, PLAIN};
use crate::falsify::Change;

const RC: Labelled = Labelled { engines: "tidb", level: "read committed", ..PLAIN };
const RR: Labelled = Labelled { level: "repeatable read", ..RC };

const UNIQUE: &str = "create table t (id int primary key, v int, unique (v));
    insert into t values (1, 10), (2, 20);";
const FAMILY: &str = "create table p (id int primary key, v int);
    create table c (id int primary key, p int, foreign key (p) references p (id));
    insert into p values (1, 10), (2, 20);";

pub const CASES: &[Labelled] = &[
    Labelled {
        name: "a transaction keeps the snapshot of its begin",
        shows: &[("T1", Step("s1.2"))],
        steps: "s1> begin pessimistic;
            s2> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s1> commit;",
        ..RR
    },
    Labelled {
        name: "each statement reads the newest committed rows",
        shows: &[("T6", Step("s1.2")), ("T6", Step("s1.3"))],
        steps: "s1> begin pessimistic;
            s1> select v from t where id = 1;
            s2> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s1> commit;",
        ..RC
    },
    Labelled {
        name: "a write finds a version that the snapshot does not show",
        shows: &[("T2", Step("s1.2")), ("T13", Step("s1.3"))],
        steps: "s1> begin pessimistic;
            s2> update t set v = 11 where id = 1;
            s1> update t set v = v + 1 where v = 11;
            s1> select v from t where id = 1;
            s1> commit;",
        ..RR
    },
    Labelled {
        name: "a statement neither sees nor waits for an uncommitted insert",
        shows: &[("T3", Step("s2.1"))],
        steps: "s1> begin pessimistic;
            s1> insert into t (id, v) values (3, 30);
            s2> update t set v = v + 1 where v >= 10;
            s1> commit;",
        ..RR
    },
    Labelled {
        name: "a locked row is waited for, and NOWAIT fails on it",
        shows: &[("T7", Step("s3.2"))],
        steps: "s1> begin pessimistic;
            s1> update t set v = 11 where id = 1;
            s3> begin pessimistic;
            s3> select v from t where id = 1 for update nowait;
            s2> begin pessimistic;
            s2> update t set v = v + 1 where id = 1;
            s1> commit;
            s2> commit;
            s3> commit;",
        ..RR
    },
    Labelled {
        name: "one transaction of a deadlock fails",
        shows: &[("T12", SomeStep)],
        breaks: &[("T12", SomeStep, Change::ErrorRemoved)],
        steps: "s1> begin pessimistic;
            s2> begin pessimistic;
            s1> update t set v = 11 where id = 1;
            s2> update t set v = 21 where id = 2;
            s1> update t set v = 22 where id = 2;
            s2> update t set v = 12 where id = 1;
            s1> commit;
            s2> commit;",
        ..RR
    },
    Labelled {
        name: "a key that the snapshot does not show is a duplicate",
        shows: &[("T9", Step("s1.2"))],
        steps: "s1> begin pessimistic;
            s2> insert into t (id, v) values (3, 30);
            s1> insert into t (id, v) values (3, 31);
            s1> commit;",
        ..RR
    },
    Labelled {
        name: "a rolled back transaction leaves no changes",
        shows: &[("T14", Step("s1.3"))],
        steps: "s1> begin pessimistic;
            s1> update t set v = 11 where id = 1;
            s1> rollback;
            s2> select v from t where id = 1;",
        ..RR
    },
    Labelled {
        name: "a row with children cannot be deleted",
        shows: &[("T15", Step("s1.2")), ("T15", Step("s1.3"))],
        setup: FAMILY,
        steps: "s1> begin pessimistic;
            s1> insert into c (id, p) values (1, 1);
            s1> delete from p where id = 1;
            s1> commit;",
        ..RR
    },
    Labelled {
        name: "an optimistic transaction keeps its snapshot at every level",
        shows: &[("T16", Step("s1.2")), ("T17", Step("s1.3")), ("T16", Step("s1.4"))],
        steps: "s1> begin optimistic;
            s2> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s1> update t set v = v + 5 where v = 20;
            s1> select v from t where id = 2;
            s1> commit;",
        ..RC
    },
    Labelled {
        name: "no statement waits for the writes of an optimistic transaction",
        shows: &[("T17", Step("s1.2")), ("T18", Step("s1.3"))],
        steps: "s1> begin optimistic;
            s1> update t set v = 11 where id = 1;
            s2> update t set v = v + 5 where id = 1;
            s1> commit;",
        ..RR
    },
    Labelled {
        name: "the COMMIT fails if a row read for update has changed",
        shows: &[("T18", Step("s1.4"))],
        steps: "s1> begin optimistic;
            s1> select v from t where id = 1 for update;
            s1> update t set v = 21 where id = 2;
            s2> update t set v = 11 where id = 1;
            s1> commit;",
        ..RR
    },
    Labelled {
        name: "two optimistic transactions write different rows",
        shows: &[("T17", Step("s1.2")), ("T17", Step("s2.2"))],
        steps: "s1> begin optimistic;
            s2> begin optimistic;
            s1> update t set v = 11 where id = 1;
            s2> update t set v = 21 where id = 2;
            s1> commit;
            s2> select v from t where id = 1;
            s2> commit;",
        ..RR
    },
    Labelled {
        name: "a duplicate key in the snapshot fails the COMMIT",
        shows: &[("T19", Step("s1.4"))],
        steps: "s1> begin optimistic;
            s1> insert into t (id, v) values (1, 11);
            s1> select v from t where id = 1;
            s1> commit;
            s2> select v from t where id = 1;",
        ..RR
    },
    Labelled {
        name: "a key inserted since the snapshot fails the COMMIT",
        shows: &[("T18", Step("s1.3"))],
        setup: UNIQUE,
        steps: "s1> begin optimistic;
            s1> insert into t (id, v) values (3, 30);
            s2> insert into t (id, v) values (4, 30);
            s1> commit;",
        ..RR
    },
    Labelled {
        name: "a COMMIT conflicts with the lock of a later transaction",
        shows: &[("T20", Step("s1.3"))],
        steps: "s1> begin optimistic;
            s1> update t set v = 11 where id = 1;
            s2> begin pessimistic;
            s2> update t set v = v + 5 where id = 1;
            s1> commit;
            s2> commit;",
        ..RR
    },
    Labelled {
        name: "a COMMIT waits for the lock of an earlier transaction",
        steps: "s2> begin pessimistic;
            s2> update t set v = v + 5 where id = 1;
            s1> begin optimistic;
            s1> update t set v = 11 where id = 1;
            s1> commit;
            s2> rollback;",
        ..RR
    },
    Labelled {
        name: "a foreign key is checked in the snapshot and again by the COMMIT",
        shows: &[("T21", Step("s1.2")), ("T21", Step("s1.3")), ("T18", Step("s1.4"))],
        setup: FAMILY,
        steps: "s1> begin optimistic;
            s1> insert into c (id, p) values (1, 3);
            s1> insert into c (id, p) values (1, 1);
            s2> delete from p where id = 1;
            s1> commit;",
        breaks: &[("T18", Step("s1.4"), Change::CommitClaimed)],
        ..RR
    },
];
