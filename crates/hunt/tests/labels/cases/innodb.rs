//! InnoDB, in MySQL and in MariaDB.

use super::Where::{Order, SomeStep, Step};
use super::{Labelled, PLAIN};
use crate::falsify::Change;

const RU: Labelled = Labelled { engines: "mysql, mariadb", level: "read uncommitted", ..PLAIN };
const RC: Labelled = Labelled { level: "read committed", ..RU };
const RR: Labelled = Labelled { level: "repeatable read", ..RU };
const SER: Labelled = Labelled { level: "serializable", ..RU };

pub const CASES: &[Labelled] = &[
    Labelled {
        name: "a transaction keeps the read view of its first read",
        shows: &[("I1", Step("s1.2")), ("I1", Step("s1.3"))],
        steps: "s1> begin;
            s1> select v from t where id = 1;
            s2> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s1> commit;",
        ..RR
    },
    Labelled {
        name: "an update without a change makes the newest version visible",
        engines: "mysql, mariadb@10.0-10.2",
        shows: &[("I10", Step("s1.3")), ("I5", Step("s1.4"))],
        setup: "create table t (id int primary key, v int, w int);
            insert into t values (1, 10, 5);",
        steps: "s1> begin;
            s1> select v from t where id = 1;
            s2> update t set v = 15 where id = 1;
            s1> update t set w = 5 where id = 1;
            s1> select v from t where id = 1;
            s1> commit;",
        ..RR
    },
    Labelled {
        name: "a dirty read sees which children a blocked DELETE has deleted so far",
        shows: &[("I3", Step("s3.3"))],
        setup: "create table p (id int primary key, v int);
            create table c (id int primary key, p int,
                foreign key (p) references p (id) on delete cascade);
            insert into p values (1, 1), (3, 1), (4, 1), (6, 1), (7, 0);
            insert into c values (1, 6), (3, 7), (4, 1), (5, 3), (6, 1), (8, 6), (9, 4);",
        steps: "s3> begin;
            s3> delete from p where id = 6;
            s2> delete from p where v = 1;
            s3> select id from c;
            s3> rollback;",
        ..RU
    },
    Labelled {
        name: "each read has its own read view",
        shows: &[("I2", Step("s1.2")), ("I2", Step("s1.3"))],
        steps: "s1> begin;
            s1> select v from t where id = 1;
            s2> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s1> commit;",
        ..RC
    },
    Labelled {
        name: "a read sees a write that is later rolled back",
        shows: &[("I3", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> select v from t where id = 1;
            s1> rollback;
            s2> commit;",
        ..RU
    },
    Labelled {
        name: "a read blocks writers until its transaction ends",
        shows: &[("I4", Step("s1.2")), ("I28", Order)],
        steps: "s1> begin;
            s2> begin;
            s1> select v from t where id = 1;
            s2> update t set v = 11 where id = 1;
            s1> commit;
            s2> commit;",
        open: &[(
            Some("s2.2"),
            Change::WaitRemoved,
            "what a plain read locks depends on the index that it reads; a serial order is asked \
             for instead",
        )],
        ..SER
    },
    Labelled {
        name: "writes to different rows do not conflict",
        shows: &[("I28", Order), ("I6", Step("s1.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = v + 1 where id = 1;
            s2> update t set v = v + 1 where id = 2;
            s2> commit;
            s1> commit;",
        ..SER
    },
    Labelled {
        name: "a transaction sees its own writes and others do not",
        shows: &[("I5", Step("s1.3")), ("I1", Step("s2.1"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s2> select v from t where id = 1;
            s1> commit;",
        ..RR
    },
    Labelled {
        name: "an update overwrites a version that its read view does not show",
        shows: &[("I6", Step("s1.3"))],
        steps: "s1> begin;
            s1> select v from t where id = 1;
            s2> update t set v = v + 5 where id = 1;
            s1> update t set v = v + 1 where id = 1;
            s1> select v from t where id = 1;
            s1> commit;",
        snapshot_isolation: Some(false),
        ..RR
    },
    Labelled {
        name: "an update finds a row that its read view does not show",
        shows: &[("I6", Step("s1.3"))],
        steps: "s1> begin;
            s1> select id from t where v > 5;
            s2> insert into t (id, v) values (3, 30);
            s1> update t set v = v + 1 where v > 5;
            s1> select id from t where v > 5;
            s1> commit;",
        snapshot_isolation: Some(false),
        ..RR
    },
    Labelled {
        name: "a locking read sees a version that a plain read does not",
        shows: &[("I6", Step("s1.3"))],
        steps: "s1> begin;
            s1> select v from t where id = 1;
            s2> update t set v = 11 where id = 1;
            s1> select v from t where id = 1 for update;
            s1> select v from t where id = 1;
            s1> commit;",
        snapshot_isolation: Some(false),
        ..RR
    },
    Labelled {
        name: "a consistent snapshot is taken at once",
        shows: &[("I7", Step("s1.2"))],
        steps: "s1> start transaction with consistent snapshot;
            s2> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s1> commit;",
        snapshot_isolation: Some(false),
        ..RR
    },
    Labelled {
        name: "a read that cannot find any row creates no read view",
        shows: &[("I8", Step("s1.2")), ("I1", Step("s1.3"))],
        steps: "s1> begin;
            s1> select v from t where 1 = 0;
            s2> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s1> commit;",
        open: &[(
            Some("s1.3"),
            Change::AnotherValueRead,
            "the optimizer decides whether a read without rows creates a read view",
        )],
        ..RR
    },
    Labelled {
        name: "INSERT SELECT reads the rows that a plain read sees",
        shows: &[("I9", Step("s2.2"))],
        setup: "create table t (id int primary key, v int);
            create table u (id int primary key, v int);
            insert into t values (1, 10), (2, 20);",
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> insert into u (id, v) select id, v from t where id = 1 order by id, v;
            s1> commit;
            s2> commit;",
        ..RC
    },
    Labelled {
        name: "a NOWAIT statement fails on a locked row",
        engines: "mysql@8.0-, mariadb@10.3-",
        shows: &[("I31", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> select v from t where id = 1 for update nowait;
            s1> commit;
            s2> rollback;",
        ..RR
    },
    Labelled {
        name: "a write waits for an uncommitted insert of its row",
        shows: &[("I11", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> insert into t (id, v) values (3, 30);
            s2> update t set v = v + 1 where v = 30;
            s1> commit;
            s2> commit;",
        snapshot_isolation: Some(false),
        ..RR
    },
    Labelled {
        name: "an update skips a row with an uncommitted insert",
        shows: &[("I14", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> insert into t (id, v) values (3, 30);
            s2> update t set v = v + 1 where v = 30;
            s1> commit;
            s2> commit;",
        snapshot_isolation: Some(false),
        ..RC
    },
    Labelled {
        name: "an update finds the replaced row that it waited for",
        shows: &[("I11", Step("s2.2")), ("I6", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> replace into t (id, v) values (1, 30);
            s2> update t set v = v + 1 where id = 1;
            s1> commit;
            s2> commit;",
        snapshot_isolation: Some(false),
        ..RC
    },
    Labelled {
        name: "an update skips a locked row that does not match",
        shows: &[("I14", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 30 where id = 1;
            s2> update t set v = v + 1 where v = 20;
            s1> commit;
            s2> commit;",
        snapshot_isolation: Some(false),
        ..RC
    },
    Labelled {
        name: "an insert waits for an uncommitted insert of its key and then fails",
        shows: &[("I18", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> insert into t (id, v) values (3, 30);
            s2> insert into t (id, v) values (3, 31);
            s1> commit;
            s2> commit;",
        ..RR
    },
    Labelled {
        name: "an upsert changes a row that its read view does not show",
        shows: &[("I19", Step("s1.3"))],
        steps: "s1> begin;
            s1> select v from t where id = 1;
            s2> insert into t (id, v) values (3, 30);
            s1> insert into t (id, v) values (3, 1) on duplicate key update v = v + 1;
            s1> select id, v from t;
            s1> commit;",
        snapshot_isolation: Some(false),
        ..RR
    },
    Labelled {
        name: "an upsert changes the row that has its key",
        shows: &[("I19", Step("s2.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> insert into t (id, v) values (3, 30);
            s2> insert into t (id, v) values (3, 1) on duplicate key update v = v + 1;
            s1> commit;
            s2> commit;",
        ..RC
    },
    Labelled {
        name: "a row with a new child cannot be deleted",
        shows: &[("I20", Step("s1.2")), ("I20", Step("s2.2"))],
        setup: "create table p (id int primary key);
            create table c (id int primary key, p int, foreign key (p) references p (id));
            insert into p values (1), (2);",
        steps: "s1> begin;
            s2> begin;
            s1> insert into c (id, p) values (1, 1);
            s2> delete from p where id = 1;
            s1> commit;
            s2> commit;",
        ..RR
    },
    Labelled {
        name: "ROLLBACK TO a savepoint undoes later writes",
        shows: &[("I21", Step("s1.5"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s1> savepoint a;
            s1> update t set v = 12 where id = 1;
            s1> rollback to savepoint a;
            s1> select v from t where id = 1;
            s2> select v from t where id = 1;
            s1> commit;",
        breaks: &[("I21", Step("s1.6"), Change::AnotherValueRead)],
        ..RR
    },
    Labelled {
        name: "one transaction of a deadlock is rolled back",
        shows: &[("I22", SomeStep)],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = v + 1 where id = 1;
            s2> update t set v = v + 1 where id = 2;
            s1> update t set v = v + 1 where id = 2;
            s2> update t set v = v + 1 where id = 1;
            s1> commit;
            s2> commit;",
        breaks: &[("I22", SomeStep, Change::ErrorRemoved)],
        ..RR
    },
    Labelled {
        name: "a rolled back transaction leaves no changes",
        shows: &[("I27", Step("s1.3"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s1> rollback;
            s2> select v from t where id = 1;",
        ..RR
    },
    Labelled {
        name: "a NULL in a NOT NULL column fails its statement",
        shows: &[("I29", Step("s2.2"))],
        setup: "create table t (id int primary key, v int not null);
            insert into t values (1, 10), (2, 20);",
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> insert into t (id, v) values (3, null);
            s1> commit;
            s2> commit;",
        ..RC
    },
    Labelled {
        name: "IGNORE replaces a NULL in a NOT NULL column by zero",
        shows: &[("I29", Step("s2.2"))],
        setup: "create table t (id int primary key, v int not null);
            insert into t values (1, 10), (2, 20);",
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 11 where id = 1;
            s2> insert ignore into t (id, v) values (3, null);
            s2> select v from t where id = 3;
            s1> commit;
            s2> commit;",
        ..RC
    },
    Labelled {
        name: "a dirty read while another statement waits",
        shows: &[("I3", Step("s3.1")), ("I3", Step("s3.2"))],
        steps: "s1> begin;
            s2> begin;
            s1> update t set v = 21 where id = 2;
            s2> update t set v = v + 1;
            s3> select id, v from t where id = 1;
            s3> select id, v from t where id = 2;
            s1> commit;
            s2> commit;",
        open: &[(
            Some("s3.1"),
            Change::AnotherValueRead,
            "the rows that a blocked statement has reached are not observable",
        )],
        ..RU
    },
    Labelled {
        name: "a write to a row that changed after the read view is rolled back",
        shows: &[("M2", Step("s1.3"))],
        steps: "s1> begin;
            s1> select v from t where id = 1;
            s2> update t set v = v + 5 where id = 1;
            s1> update t set v = v + 1 where id = 1;
            s1> commit;",
        snapshot_isolation: Some(true),
        ..RR
    },
];
