use super::*;
use crate::Dialect;

const SQLITE: &str = "sqlite";
const POSTGRES: &str = "postgres";
const MYSQL: &str = "mysql";
const DUCKDB: &str = "duckdb";
const ANY: &str = "an unknown engine";

fn read(engine: &str, text: &str) -> Option<Stmt> {
    statement(text, Dialect::for_engine(engine, "9").family)
}

/// Parses a statement and renders it; none if it is opaque.
fn again(engine: &str, text: &str) -> Option<String> {
    Some(read(engine, text)?.render(&Dialect::for_engine(engine, "9")))
}

#[track_caller]
fn same(engine: &str, texts: &[&str]) {
    for text in texts {
        assert_eq!(again(engine, text).as_deref(), Some(*text), "{engine}");
    }
}

#[track_caller]
fn becomes(engine: &str, pairs: &[(&str, &str)]) {
    for (text, expected) in pairs {
        assert_eq!(again(engine, text).as_deref(), Some(*expected), "{engine}: {text}");
    }
}

#[track_caller]
fn opaque(engine: &str, texts: &[&str]) {
    for text in texts {
        assert_eq!(read(engine, text), None, "{engine}: {text}");
    }
}

#[test]
fn query_is_parsed_with_all_its_clauses() {
    same(
        POSTGRES,
        &[
            "select 1",
            "select *, t.*, a as b from t as x where (a + 1) > 2 order by b desc nulls last, 3",
            "select a from t limit 2 offset 1 for update",
            "select a from (select b as a from u) as d, v cross join w where a is not true",
            "select a from t left join u on t.a = u.a full join v on v.a = t.a",
            "select 1 from t left join (u join (v join w on v.a = w.a) on u.a = w.a) on t.a = u.a",
            "select cast(a as smallint), -b, a || b, a / b, lower(c) from t",
            "select case a when 1 then 2 end from t where a not between 1 and 2",
            "select a from t where (a is not distinct from b) and (c not like 'x%')",
            "with q (a) as (select b from t) select avg(a) from q group by a having count(*) > 1",
            "select a from t union all select b from u union all select c from v limit 1",
            "select a from t for no key update of t, u nowait",
            "select a from t for key share skip locked",
            "with recursive q (n) as (select 1 union select n + 1 from q where n < 5) select n from q",
            "select count(*) filter (where a > 1), string_agg(distinct b, ',' order by b) from t",
            "select max(a) over (order by b rows 2 preceding), rank() over w from t window w as (partition by c order by b groups between current row and unbounded following)",
            "select a from t join u using (a, b) natural left join v",
            "select a from t where (a = any (select b from u)) and (b > all (select c from u))",
            "select a from t where ((a, b) = (1, 2)) and ((b, c) in (select d, e from u))",
            "select a from t group by rollup (a, b)",
            "select a from t group by grouping sets ((a, b), (b), ())",
            "select a from t cross join lateral (select t.a as b) as x where b = 1",
            "select a, b from t join (values (1, 'a'), (2, 'b')) as v (x, y) on v.x = t.a",
            "values (1), (2)",
        ],
    );
    becomes(
        MYSQL,
        &[
            ("SELECT `A` FROM T1 WHERE a<=>null", "select a from `T1` where a <=> null"),
            ("select a from t limit 2, 3", "select a from t limit 3 offset 2"),
            ("select a from t for update wait 5", "select a from t for update wait 5"),
            ("select a from t lock in share mode -- why", "select a from t for share"),
            ("select \"it's\", 'a\\\\b' from t", "select 'it''s', 'a\\\\b' from t"),
            ("select (a) from t where not a=1", "select a from t where not (a = 1)"),
            ("select `order`, a.`key` from a", "select `order`, a.`key` from a"),
            ("select a from t where a || b", "select a from t where a or b"),
            (
                "select ntile(2) over w, ceiling(a) from t window w as (order by a desc)",
                "select ntile(2) over w, ceiling(a) from t window w as (order by a desc)",
            ),
            (
                "select a, group_concat(b order by b) from t group by a with rollup",
                "select a, group_concat(b order by b separator ',') from t group by a with rollup",
            ),
            (
                "select x from (values row(1), row(2)) as v (x)",
                "select x from (values row(1), row(2)) as v (x)",
            ),
            ("select (a & b) | (1 << a) from t", "select (a & b) | (1 << a) from t"),
        ],
    );
    becomes(
        ANY,
        &[
            (
                "SELECT A FROM T WHERE B!=-5 AND C IN(1,2)",
                "select a from t where (b <> -5) and (c in (1, 2))",
            ),
            ("(select a from t)", "select a from t"),
        ],
    );
}

#[test]
fn query_with_an_unsupported_clause_is_opaque() {
    opaque(
        POSTGRES,
        &[
            "select distinct on (a) a from t",
            "select string_agg(b, ';' order by b) from t",
            "select string_agg(b, ',' order by c) from t",
            "select a from t where a = any (array[1, 2])",
            "select lower(a) filter (where a > 'x') from t",
            "select rank() over (w order by a) from t window w as (partition by b)",
            "select rank() over (order by a range between 1.5 preceding and current row) from t",
            "select a from t group by a, rollup (b)",
            "select a from t tablesample system (10)",
            "select a from t fetch first 2 rows only",
            "with q as (delete from t returning a) select a from q",
            "select a from s.t",
            "select a from t union select b from u except select c from v",
            "select a from t union select b from u for update",
            "select a from t for update of t for share of u",
            "(select a from t limit 1) union select b from u",
            "select a into u from t",
            "select a from t where a = b = c",
            "select a from t where a || b + 1 = 'x'",
            "select a collate \"C\" from t",
            "select current_timestamp",
            "select a from t where a = $1",
            "select a from t; select b from t",
            "select a, from t",
            "select a end from t",
            "",
        ],
    );
    opaque(
        MYSQL,
        &[
            "select a from t force index (i)",
            "select a from t partition (p0)",
            "select a into @x from t",
            "select @x",
            "select /*! straight_join */ a from t",
            "select sql_no_cache a from t",
            "select straight_join a from t",
            "select /*+ hint(t) */ a from t",
            "select a from t, u right join v on u.a = v.a",
        ],
    );
    opaque(SQLITE, &["select \"a\" from t", "select 0x10", "select a from t where a match 'x'"]);
    opaque(
        ANY,
        &["select a || b from t", "select 'a\\b'", "select \"A\" from t", "select é from t"],
    );
}

#[test]
fn write_is_parsed_with_all_its_clauses() {
    same(
        POSTGRES,
        &[
            "insert into t values (1, default) returning *",
            "insert into t default values",
            "insert into t as x (a) values (1) on conflict (a) do update set b = excluded.b + 1 where x.b > 2",
            "insert into t (a) select b from u on conflict (a) do nothing",
            "insert into t (a) values (1) on conflict do nothing",
            "upsert into t (a) values (1)",
            "update t as x set a = x.b from u as y where (x.c = y.c) and (y.d > 1) returning x.a as b",
            "delete from t as x using u where x.a = u.a",
            "delete from t where a = '\\x00ff'::bytea",
        ],
    );
    same(
        MYSQL,
        &[
            "insert ignore into t (a) values (1), (2)",
            "insert into t (a) values (1) on duplicate key update b = values(b) + t.b",
            "replace into t select a from u for share",
            "update t join u on t.a = u.a set b = 1 where c = 2",
            "update t set a = 1 order by a desc limit 1",
            "delete t from t join u on t.a = u.a where u.b = x'00ff'",
            "delete from t where a > 1 order by a limit 2",
            "delete x from t as x where x.a > 1",
        ],
    );
    becomes(
        MYSQL,
        &[
            ("insert t set a=1, b=2", "insert into t (a, b) values (1, 2)"),
            ("update t x set x.a=1", "update t as x set a = 1"),
            ("insert into t () values ()", "insert into t values ()"),
        ],
    );
    same(
        SQLITE,
        &[
            "insert or ignore into t (a) values (1)",
            "insert into t (a) values (1) on conflict do nothing",
            "replace into t (a) values (1)",
        ],
    );
    becomes(SQLITE, &[("insert or replace into t values (1)", "replace into t values (1)")]);
}

#[test]
fn write_with_an_unsupported_clause_is_opaque() {
    opaque(
        POSTGRES,
        &[
            "insert into t (a) values (1) on conflict on constraint c do nothing",
            "insert into t (a) overriding system value values (1)",
            "insert into s.t values (1)",
            "with q as (select 1) insert into t select * from q for update",
            "update t set (a, b) = (1, 2)",
            "update t set a[1] = 2",
            "update t set a = 1 from u, v",
            "update t set a = 1 from u join v on u.a = v.a",
            "update only t set a = 1",
            "delete from t using u, v",
            "delete from t where current of c",
        ],
    );
    opaque(
        MYSQL,
        &[
            "insert low_priority into t values (1)",
            "insert into t values (1) as n on duplicate key update a = n.a",
            "insert into t partition (p0) values (1)",
            "update ignore t set a = 1",
            "update low_priority t set a = 1",
            "delete quick from t",
            "update t, u set t.a = u.a",
            "update t join u on t.a = u.a set u.b = 1",
            "update t left join u on t.a = u.a set b = 1",
            "update t join (select 1) as u set b = 1",
            "delete t, u from t join u on t.a = u.a",
            "delete u from t join u on t.a = u.a",
            "delete from t using t join u on t.a = u.a",
            "replace into t values (1) on duplicate key update a = 1",
            "load data infile 'x' into table t",
        ],
    );
    opaque(SQLITE, &["insert or abort into t values (1)", "update or ignore t set a = 1"]);
    opaque(DUCKDB, &["insert or replace into t values (1)"]);
}

#[test]
fn transaction_control_is_parsed_in_all_its_forms() {
    becomes(
        POSTGRES,
        &[
            ("BEGIN", "begin"),
            ("begin work", "begin"),
            ("Begin Transaction", "begin"),
            ("begin immediate transaction", "begin immediate"),
            ("start transaction", "begin"),
            (
                "begin isolation level repeatable read",
                "start transaction isolation level repeatable read",
            ),
            (
                "start transaction isolation level serializable, read only deferrable",
                "start transaction isolation level serializable, read only, deferrable",
            ),
            (
                "start transaction with consistent snapshot",
                "start transaction with consistent snapshot",
            ),
            ("end /* it */", "commit"),
            ("abort", "rollback"),
            ("rollback to a", "rollback to savepoint a"),
            ("ROLLBACK WORK TO SAVEPOINT \"A b\"", "rollback to savepoint \"A b\""),
            ("savepoint S", "savepoint s"),
            ("release s", "release savepoint s"),
            ("set autocommit=OFF", "set autocommit = 0"),
            ("set @@session.autocommit = 1", "set autocommit = 1"),
            (
                "set session characteristics as transaction isolation level read committed",
                "set session characteristics as transaction isolation level read committed",
            ),
            ("set transaction read only", "set transaction read only"),
            ("execute p", "execute p"),
            ("prepare p as select a from t", "prepare p as select a from t"),
        ],
    );
    becomes(
        MYSQL,
        &[
            (
                "prepare p from 'select ''a'' from t for update'",
                "prepare p from 'select ''a'' from t for update'",
            ),
            (
                "set session transaction isolation level snapshot",
                "set session transaction isolation level snapshot",
            ),
        ],
    );
    opaque(
        MYSQL,
        &[
            "commit and chain",
            "rollback release",
            "commit prepared 'x'",
            "xa start 'x'",
            "begin read",
            "start transaction read only, read write",
            "start transaction read only,",
            "set global autocommit = 0",
            "set autocommit = default",
            "set global transaction isolation level serializable",
            "set transaction snapshot '1'",
            "set transaction",
            "set @a = 1",
            "execute p using @a",
            "execute p (1)",
            "prepare p (int) as select 1",
            "prepare p from @x",
            "prepare p from 'select a into @x from t'",
            "savepoint",
        ],
    );
}

#[test]
fn ddl_is_parsed() {
    same(
        POSTGRES,
        &[
            "create unique index i on t (a desc, (abs(b))) where a > 1",
            "drop index i",
            "truncate table t",
        ],
    );
    same(MYSQL, &["drop index i on t", "alter table t add column c varchar(20)"]);
    opaque(
        POSTGRES,
        &[
            "create index concurrently i on t (a)",
            "create index i on t using gin (a)",
            "create index i on t (a) include (b)",
            "create index on t (a)",
            "truncate t, u",
            "truncate t restart identity",
            "alter table t add column c int not null",
            "alter table t add column c int, add column d int",
            "alter table t drop column c",
            "drop index if exists i",
            "drop table t",
        ],
    );
}

#[test]
fn statement_that_is_too_long_or_too_deep_is_opaque() {
    let chain = |n: usize| format!("select {}1", "1+".repeat(n));
    assert!(read(ANY, &chain(50)).is_some());
    opaque(
        ANY,
        &[
            &chain(1900),
            &chain(100_000),
            &format!("select {}1{}", "(".repeat(5000), ")".repeat(5000)),
            &format!("select {} 1", "not ".repeat(3000)),
            &format!("select 1 {}", "union select 1 ".repeat(900)),
            &format!("select {}", "case when 1 then ".repeat(500)),
        ],
    );
}
