//! PostgreSQL.

use super::Where::{Order, SomeStep, Step};
use super::{Labelled, PLAIN};
use crate::falsify::Change;

const PG: Labelled = Labelled { engines: "postgres", level: "read committed", ..PLAIN };
const RR: Labelled = Labelled { level: "repeatable read", ..PG };
const SER: Labelled = Labelled { level: "serializable", ..PG };

pub const CASES: &[Labelled] = &[
    Labelled {
        name: "a row that no longer matches stays locked by the statement that re-checked it",
        shows: &[("P3", Step("s1.2")), ("P12", Step("s1.2"))],
        steps: "s1> begin;
            s2> begin;
            s2> update t set v = 11 where id = 1;
            s1> update t set v = 99 where v = 10;
            s2> commit;
            s3> select id from t for update skip locked;
            s1> commit;",
        open: &[(
            Some("s3.1"),
            Change::RowNotRead,
            "SKIP LOCKED may skip a row that an open transaction may have locked",
        )],
        ..PG
    },
    // With the planted fault of dirty reads it divides by zero: what fails in a transaction and
    // succeeds alone on the rows that it should have read is a bug.
    Labelled {
        name: "a division does not see the zero of an open transaction",
        shows: &[("P1", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 0 where id = 1;
            s2> select 100 / v from t where id = 1;
            s1> rollback;
            s2> commit;",
        ..PG
    },
    Labelled {
        name: "each statement has its own snapshot",
        shows: &[("P1", Step("s2.2")), ("P1", Step("s2.3"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> select v from t where id = 1;
            s1> commit;
            s2> select v from t where id = 1;
            s2> commit;",
        ..PG
    },
    Labelled {
        name: "a write skips a row that was deleted while it waited",
        shows: &[("P2", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> delete from t where id = 1;
            s2> update t set v = v + 1 where v > 5;
            s1> commit;
            s2> commit;",
        ..PG
    },
    Labelled {
        name: "the example of the manual: a page with ten hits is not deleted",
        shows: &[("P3", Step("s2.2"))],
        setup: "create table website (id int primary key, hits int);
            insert into website values (1, 9), (2, 10);",
        steps: "s1> begin;
            s2> begin;
            s1> update website set hits = hits + 1;
            s2> delete from website where hits = 10;
            s1> commit;
            s2> commit;",
        ..PG
    },
    Labelled {
        name: "an update applies to the newest version of a changed row",
        shows: &[("P3", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = v + 1 where id = 1;
            s2> update t set v = v * 2 where v < 15;
            s1> commit;
            s2> commit;",
        ..PG
    },
    Labelled {
        name: "a locking read re-checks a changed row",
        shows: &[("P3", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> select id, v from t where v < 15 for update;
            s1> commit;
            s2> commit;",
        ..PG
    },
    Labelled {
        name: "an upsert changes a row that its snapshot does not show",
        shows: &[("P5", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> insert into t (id, v) values (3, 30);
            s2> insert into t (id, v) values (3, 1) on conflict (id) do update set v = t.v + 1;
            s1> commit;
            s2> commit;",
        ..PG
    },
    Labelled {
        name: "a transaction keeps its snapshot",
        shows: &[("P7", Step("s2.2")), ("P7", Step("s2.3"))],
        steps: "s1> begin;
            s2> begin;
            s2> select v from t where id = 1;
            s1> update t set v = 11 where id = 1;
            s1> commit;
            s2> select v from t where id = 1;
            s2> commit;",
        ..RR
    },
    Labelled {
        name: "a reference to a row whose other key changed since the snapshot fails",
        shows: &[("P7w", Step("s2.3"))],
        setup: "create table p (id int primary key, code int unique, v int);
            create table c (id int primary key, p int references p (id));
            insert into p values (1, 10, 100);",
        steps: "s1> begin;
            s2> begin;
            s2> select id from p;
            s1> update p set code = 11 where id = 1;
            s1> commit;
            s2> insert into c values (1, 1);
            s2> rollback;",
        ..RR
    },
    Labelled {
        name: "a reference to a row that changed except for its keys succeeds",
        shows: &[("P12f", Step("s2.3"))],
        setup: "create table p (id int primary key, code int unique, v int);
            create table c (id int primary key, p int references p (id));
            insert into p values (1, 10, 100);",
        steps: "s1> begin;
            s2> begin;
            s2> select id from p;
            s1> update p set v = 101 where id = 1;
            s1> commit;
            s2> insert into c values (1, 1);
            s2> commit;",
        ..RR
    },
    Labelled {
        name: "two transactions each write what the other has read",
        shows: &[("P7", Step("s1.2")), ("P7", Step("s2.3"))],
        steps: "s1> begin;
            s2> begin;
            s1> select sum(v) from t;
            s2> select sum(v) from t;
            s1> update t set v = v - 25 where id = 1;
            s2> update t set v = v - 25 where id = 2;
            s1> commit;
            s2> commit;",
        ..RR
    },
    Labelled {
        name: "the second to update a row fails",
        shows: &[("P7w", Step("s2.3"))],
        steps: "s1> begin;
            s2> begin;
            s1> select v from t where id = 1;
            s2> select v from t where id = 1;
            s1> update t set v = 11 where id = 1;
            s2> update t set v = 12 where id = 1;
            s1> commit;
            s2> rollback;",
        ..RR
    },
    Labelled {
        name: "an upsert fails on a row that its snapshot does not show",
        shows: &[("P8", Step("s2.3"))],
        steps: "s2> begin;
            s2> select v from t where id = 1;
            s1> insert into t (id, v) values (3, 30);
            s2> insert into t (id, v) values (3, 1) on conflict do nothing;
            s2> rollback;",
        ..RR
    },
    Labelled {
        name: "the serial order differs from the commit order",
        shows: &[("P9", Order)],
        steps: "s1> begin;
            s2> begin;
            s1> select v from t where id = 1;
            s2> update t set v = 11 where id = 1;
            s2> commit;
            s1> update t set v = 21 where id = 2;
            s1> commit;",
        ..SER
    },
    Labelled {
        name: "one of two transactions that each write what the other has read fails",
        shows: &[("P9", SomeStep)],
        steps: "s1> begin;
            s2> begin;
            s1> select sum(v) from t;
            s2> select sum(v) from t;
            s1> update t set v = v - 25 where id = 1;
            s2> update t set v = v - 25 where id = 2;
            s1> commit;
            s2> commit;",
        ..SER
    },
    Labelled {
        name: "an insert waits for an uncommitted insert of its key and then fails",
        shows: &[("P10", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> insert into t (id, v) values (3, 30);
            s2> insert into t (id, v) values (3, 31);
            s1> commit;
            s2> rollback;",
        ..PG
    },
    Labelled {
        name: "ROLLBACK TO a savepoint undoes later writes",
        shows: &[("P11", Step("s1.5")), ("P14", Step("s1.6"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s1> savepoint a;
            s1> update t set v = 12 where id = 1;
            s1> rollback to savepoint a;
            s1> select v from t where id = 1;
            s2> select v from t where id = 1;
            s1> commit;",
        breaks: &[("P11", Step("s1.6"), Change::AnotherValueRead)],
        ..PG
    },
    Labelled {
        name: "a NOWAIT statement fails on a locked row",
        shows: &[("P19", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> select v from t where id = 1 for update nowait;
            s1> commit;
            s2> rollback;",
        ..PG
    },
    Labelled {
        name: "a row with a new child cannot be deleted",
        shows: &[("P12f", Step("s1.2")), ("P12f", Step("s2.2"))],
        setup: "create table p (id int primary key);
            create table c (id int primary key, p int references p (id));
            insert into p values (1), (2);",
        steps: "s1> begin;
            s2> begin;
            s1> insert into c (id, p) values (1, 1);
            s2> delete from p where id = 1;
            s1> commit;
            s2> rollback;",
        ..PG
    },
    Labelled {
        name: "one transaction of a deadlock fails",
        shows: &[("P15", SomeStep)],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = v + 1 where id = 1;
            s2> update t set v = v + 1 where id = 2;
            s1> update t set v = v + 1 where id = 2;
            s2> update t set v = v + 1 where id = 1;
            s1> commit;
            s2> commit;",
        breaks: &[("P15", SomeStep, Change::ErrorRemoved)],
        ..PG
    },
    Labelled {
        name: "a row that breaks a CHECK fails its statement",
        shows: &[("P16", Step("s2.5"))],
        setup: "create table t (id int primary key, v int not null check (v < 12));
            insert into t values (1, 10), (2, 5);",
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = v + 1 where id = 1;
            s2> update t set v = v + 1 where id = 1;
            s1> commit;
            s2> rollback;
            s2> begin;
            s2> update t set v = v + 1 where id = 1;
            s2> rollback;",
        ..PG
    },
    Labelled {
        name: "a rolled back transaction leaves no changes",
        shows: &[("P17", Step("s1.3"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s1> rollback;
            s2> select v from t where id = 1;",
        ..PG
    },
];
