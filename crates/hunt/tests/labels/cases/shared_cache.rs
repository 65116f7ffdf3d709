//! SQLite with one cache for all connections.

use super::Where::Step;
use super::{Labelled, PLAIN};
use crate::falsify::Change;

const SERIALIZABLE: Labelled =
    Labelled { engines: "sqlite+shared-cache", level: "serializable", setup: TWO_TABLES, ..PLAIN };
const UNCOMMITTED: Labelled = Labelled { level: "read uncommitted", ..SERIALIZABLE };

const TWO_TABLES: &str = "create table t (id int primary key, v int);
    create table u (id int primary key, v int);
    insert into t values (1, 10), (2, 20);
    insert into u values (1, 100);";

pub const CASES: &[Labelled] = &[
    Labelled {
        name: "a table without uncommitted writes is read in its current state",
        shows: &[("S12", Step("s1.2")), ("S12", Step("s1.3"))],
        steps: "s1> begin;
            s1> select v from t where id = 1;
            s2> update u set v = 101 where id = 1;
            s1> select v from u where id = 1;
            s1> commit;",
        ..SERIALIZABLE
    },
    Labelled {
        name: "a table with uncommitted writes cannot be read before the commit",
        shows: &[("S12", Step("s2.1"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s2> select v from t where id = 1;
            s1> commit;",
        breaks: &[("S13", Step("s2.1"), Change::WaitRemoved)],
        ..SERIALIZABLE
    },
    Labelled {
        name: "a table that an open transaction has read cannot be written",
        steps: "s1> begin;
            s1> select v from t where id = 1;
            s2> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s1> commit;",
        breaks: &[("S13", Step("s2.1"), Change::WaitRemoved)],
        ..SERIALIZABLE
    },
    Labelled {
        name: "two transactions that have read a table cannot both write it",
        shows: &[("S13", Step("s2.3"))],
        steps: "s1> begin;
            s2> begin;
            s1> select v from t where id = 1;
            s2> select v from t where id = 1;
            s1> update t set v = 11 where id = 1;
            s2> update t set v = 12 where id = 1;
            s2> rollback;
            s1> commit;",
        ..SERIALIZABLE
    },
    Labelled {
        name: "uncommitted rows are read",
        shows: &[("S14", Step("s2.1")), ("S14", Step("s2.2"))],
        steps: "s1> begin;
            s1> update t set v = 11 where id = 1;
            s2> select v from t where id = 1;
            s1> rollback;
            s2> select v from t where id = 1;",
        ..UNCOMMITTED
    },
    Labelled {
        name: "a reader of uncommitted rows blocks no writer",
        shows: &[("S14", Step("s1.2")), ("S14", Step("s1.3"))],
        steps: "s1> begin;
            s1> select v from t where id = 1;
            s2> update t set v = 11 where id = 1;
            s1> select v from t where id = 1;
            s1> commit;",
        ..UNCOMMITTED
    },
];
