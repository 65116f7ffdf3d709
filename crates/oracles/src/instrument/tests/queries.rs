//! What instrumented queries reveal, and that their rows stay as they are.

use super::*;

#[test]
fn a_query_names_the_versions_of_the_rows_that_it_returns() {
    let mut s = Session::new();
    assert_eq!(s.reads("select b from t where a < 3"), ["0r0@[] 0r1@[]"]);
    s.touched("update t set b = 11 where a = 1");
    assert_eq!(s.reads("select * from t where b = 11"), ["0r0@[2]"]);
    assert_eq!(s.reads("select b from t where a = 99"), [""]);
}

#[test]
fn a_join_names_versions_of_both_tables_and_none_for_a_missing_partner() {
    let mut s = Session::new();
    let joined = s.reads("select t.b, u.e from t left join u on t.a = u.d where t.a > 1");
    assert_eq!(joined, ["0r1@[] 0r2@[]", "1r1@[]"]);
    let twice = s.reads("select t.a from t join t as y on t.b = y.b where t.a = 3");
    assert_eq!(twice, ["0r2@[] 0r2@[]", "0r1@[] 0r2@[]"]);
}

#[test]
fn aggregates_groups_and_distinct_name_all_that_went_in() {
    let mut s = Session::new();
    let all = ["0r0@[] 0r1@[] 0r2@[]"];
    assert_eq!(s.reads("select count(*), max(b) from t"), all);
    assert_eq!(s.reads("select b, count(*) from t group by b"), all);
    assert_eq!(s.reads("select distinct b from t"), all);
    assert_eq!(
        s.reads("select b, count(*) from t group by b having count(*) > 1"),
        ["0r1@[] 0r2@[]"]
    );
}

#[test]
fn set_operations_keep_their_rows_and_name_what_each_side_read() {
    let mut s = Session::new();
    let sql = "select b from t where a > 1 union select e from u where d = 1";
    assert_eq!(s.reads(sql), ["0r1@[] 0r2@[]", "1r0@[]"]);
    let statement = s.instrument.statement(9, &parsed(sql, Family::Sqlite)).unwrap();
    let own = s.rows(&statement[0].statement).into_iter().filter(|row| row[0] != Value::Null);
    assert_eq!(own.count(), 2, "20 once, and 5");
}

#[test]
fn subqueries_name_the_versions_they_read() {
    let mut s = Session::new();
    assert_eq!(
        s.reads("with q as (select a, b from t where b = 20) select a from q where a > 2"),
        ["0r2@[]"]
    );
    assert_eq!(
        s.reads("select a from t where a in (select d from u where e = 6)"),
        ["0r1@[]", "1r1@[]"]
    );
    assert_eq!(s.reads("select x.a from (select a from t where b = 20) as x"), ["0r1@[] 0r2@[]"]);
}

#[test]
fn conditions_on_one_row_are_predicates_and_others_are_not() {
    let instrument = instrument("sqlite");
    let predicates = |sql: &str| -> Vec<bool> {
        let statement = parsed(sql, Family::Sqlite);
        match &instrument.statement(1, &statement).unwrap().pop().unwrap().probe {
            Probe::Read { cells, .. } => cells.iter().map(Option::is_some).collect(),
            Probe::Rows { predicate, .. } => vec![predicate.is_some()],
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(predicates("select a from t where b > 1"), [true]);
    assert_eq!(predicates("select count(*) from t"), [true]);
    assert_eq!(predicates("select a from t x where x.b > 1"), [true]);
    assert_eq!(predicates("update t set b = 1 where c is null"), [true]);
    assert_eq!(predicates("delete from t"), [true]);
    assert_eq!(predicates("select a from t union select d from u where d = 1"), [true, true]);
    assert_eq!(
        predicates("with q as (select a from t where a > 1) select a from q where a < 3"),
        [true]
    );
    assert_eq!(predicates("select a from t where b > 1 limit 1"), [false]);
    assert_eq!(predicates("select t.a from t join u on a = d"), [false, false]);
    assert_eq!(predicates("select b from t group by b having count(*) > 1"), [false]);
    assert_eq!(predicates("select a from t where a in (select d from u)"), [false, false]);
}

#[test]
fn rows_of_outer_joins_in_set_operations_stay_as_they_are() {
    let mut s = Session::new();
    let joined = "select u.e from t left join u on t.a = u.d where t.a > 1";
    let all = format!("{joined} union all select b from t where a = 1 union all select e from u");
    assert_eq!(s.reads(&all), ["0r1@[] 0r2@[]", "1r1@[]", "0r0@[]", "1r0@[] 1r1@[]"]);
    let both = format!("{joined} intersect select null from t where a = 1");
    assert_eq!(s.reads(&both), ["0r1@[] 0r2@[]", "1r1@[]", "0r0@[]"]);
    let without = format!("{joined} except select e from u where d = 2");
    assert_eq!(s.reads(&without), ["0r1@[] 0r2@[]", "1r1@[]", "1r1@[]"]);
    let sorted = format!("{joined} union select b from t where a = 1 order by 1 limit 1");
    assert_eq!(s.reads(&sorted), ["0r1@[] 0r2@[]", "1r1@[]", "0r0@[]"]);
}

#[test]
fn rows_put_together_in_several_ways_are_named_below_the_result() {
    let mut s = Session::new();
    let all = ["0r0@[] 0r1@[] 0r2@[]"];
    assert_eq!(s.reads("select distinct a + 1 from t"), all);
    assert_eq!(s.reads("select distinct b, count(*) over () from t"), all);
    assert_eq!(s.reads("select sum(count(*)) over (order by b) from t group by b"), all);
    assert_eq!(
        s.reads("select my_function from (select count(*) as my_function from t) as x"),
        all
    );
    // Two columns of one name, and one without.
    assert_eq!(s.reads("select distinct a, a, b + 1 from t where a = 1"), ["0r0@[]"]);
    let limited = "select distinct a + 1 as n, b from t order by n desc limit 2";
    assert_eq!(s.reads(limited), all);
}

#[test]
fn queries_in_from_hand_out_what_they_read() {
    let mut s = Session::new();
    let union = "select x.n from (select a as n from t where a < 3 union select d from u) as x";
    assert_eq!(s.reads(union), ["0r0@[] 0r1@[]", "1r0@[] 1r1@[]"]);
    let all = "select x.n from (select a as n from t where a < 2 union all select d from u) as x \
               where x.n = 2";
    assert_eq!(s.reads(all), ["", "1r1@[]"]);
    let limited = "select x.a from (select a from t order by a desc limit 1) as x";
    assert_eq!(s.reads(limited), ["0r2@[]"]);
    let nested = "select y.n from (select x.a as n from (select a from t where b = 20) as x \
                  join u on u.d = x.a) as y";
    assert_eq!(s.reads(nested), ["0r1@[]", "1r1@[]"]);
    let grouped = "select x.n, u.e from (select b, count(*) as n from t group by b) as x \
                   left join u on u.d = x.n";
    assert_eq!(s.reads(grouped), ["0r0@[] 0r1@[] 0r2@[]", "1r0@[] 1r1@[]"]);
    let values = "select t.b from t join (values (1), (3)) as v on t.a = v.column1";
    assert_eq!(s.reads(values), ["0r0@[] 0r2@[]"]);
}

#[test]
fn each_cte_that_is_read_names_its_rows() {
    let mut s = Session::new();
    let two = "with q as (select a from t where a > 1), r as (select d from u where d in (1)) \
               select q.a, r.d from q left join r on q.a = r.d";
    assert_eq!(s.reads(two), ["0r1@[] 0r2@[]", ""]);
    let inside = "with q as (select a from t where a > 1) \
                  select d from u where d in (select a from q)";
    assert_eq!(s.reads(inside), ["0r1@[] 0r2@[]", "1r1@[]"]);
    let unused = "with q as (select a from t) select d from u where d = 1";
    assert_eq!(s.reads(unused), ["1r0@[]"]);
    let recursive = "with recursive q (n) as (select a from t where a = 1 union all \
                     select n + 1 from q join u on u.d = n where n < 3) select n from q";
    assert_eq!(s.reads(recursive), ["0r0@[]", "1r0@[] 1r1@[]"]);
}

#[test]
fn nested_and_correlated_subqueries_name_what_they_read_for_each_row() {
    let mut s = Session::new();
    let nested = "select d from u where exists (select 1 from t where t.a = u.d and t.b in \
                  (select x.b from t as x where x.a > u.d))";
    assert_eq!(s.reads(nested), ["1r1@[]", "0r1@[]", "0r2@[]"]);
    let combined = "select d from u where d in (select a from t where b = 20 union \
                    select e - 4 from u as x where x.d = u.d)";
    assert_eq!(
        s.reads(combined),
        ["1r0@[] 1r1@[]", "0r1@[] 0r1@[] 0r2@[] 0r2@[]", "1r0@[] 1r1@[]"]
    );
    let grouped = "select b, (select max(d) from u where u.d < t.b) from t group by b";
    assert_eq!(s.reads(grouped)[0], "0r0@[] 0r1@[] 0r2@[]");
    let on = "select t.a from t join u on t.a = u.d and u.e > (select min(x.e) from u as x)";
    assert_eq!(s.reads(on), ["0r1@[]", "1r1@[]", "1r0@[] 1r1@[]"]);
    // Both are called `t`, so that they cannot be joined: the inner one is left out.
    let same = "select d from u where exists (select 1 from t where t.a = u.d and t.b in \
                (select t.b from t where t.a > u.d))";
    assert_eq!(s.reads(same), ["1r1@[]", "0r1@[]"]);
    assert_eq!(s.unobserved(same), ["a subquery uses the names of the one around it"]);
}

#[test]
fn stars_stand_for_the_columns_without_the_added_ones() {
    let mut s = Session::new();
    let inside =
        "select * from (select * from t where a in (select d from (select * from u) as x)) as y";
    assert_eq!(s.reads(inside)[0], "0r0@[] 0r1@[]");
    assert_eq!(s.reads("with q as (select * from u) select * from q where d = 1"), ["1r0@[]"]);
    assert_eq!(
        s.reads("select a from t where exists (select * from u where d = a)")[0],
        "0r0@[] 0r1@[]"
    );
    assert_eq!(s.reads("select a, b from t where a = 1 union select * from u")[1], "1r0@[] 1r1@[]");
    assert_eq!(
        s.reads("select * from u join u as w using (d) where u.d = 1"),
        ["1r0@[]", "1r0@[]"]
    );
    // All columns of both: the rows that are equal.
    assert_eq!(s.reads("select * from u natural join u as w where d = 1"), ["1r0@[]", "1r0@[]"]);
}

#[test]
fn a_function_with_an_effect_is_not_called_twice() {
    let s = Session::new();
    let sent = |sql: &str| observed("sqlite", 1, sql).unwrap().join("; ");
    let effect = "select a from t where next_number() > 1 union select d from u";
    assert_eq!(sent(effect).matches("next_number").count(), 1);
    assert_eq!(s.unobserved(effect), ["a condition calls a function with an effect"]);
    let pure = "select a from t where abs(b) > 1 union select d from u";
    assert_eq!(sent(pure).matches("abs").count(), 2);
    assert_eq!(s.unobserved(pure), Vec::<&str>::new());
    let subquery = "select a from t where a in (select d from u where next_number() > 1)";
    assert_eq!(s.unobserved(subquery), ["a condition calls a function with an effect"]);
}

#[test]
fn views_are_read_by_name_and_name_what_their_queries_read() {
    let dialect = Dialect::for_engine("sqlite", "99");
    let views = [
        "create view w as select a, b from t where b = 20",
        "create view x as select a from t where a < 3 union select d from u",
    ];
    let tables: Vec<&str> = TABLES.into_iter().chain(views).collect();
    let schema = read::schema(tables, Family::Sqlite).schema;
    assert_eq!(schema.views.len(), 2);
    let instrument = Instrument::new(schema, dialect, capabilities("sqlite"));
    let mut s = Session::new();
    for view in instrument.views() {
        let sql = format!(
            "create view {} as {}",
            view.name,
            Stmt::Select(view.select.clone()).render(&instrument.dialect)
        );
        s.connection.execute_batch(&sql).unwrap();
    }
    s.instrument = instrument;
    assert_eq!(s.reads("select a from w where a > 2"), ["0r2@[]"]);
    assert_eq!(s.reads("select a from x where a > 1"), ["0r0@[] 0r1@[]", "1r0@[] 1r1@[]"]);
    assert_eq!(
        s.reads("select d from u where d in (select a from w)"),
        ["1r1@[]", "0r1@[] 0r2@[]"]
    );
    let sent = |sql: &str| {
        let statement = s.instrument.schema.without_views(&parsed(sql, Family::Sqlite));
        let sent = s.instrument.statement(1, &statement).unwrap();
        sent[0].statement.render(&s.instrument.dialect)
    };
    assert!(sent("select a from w").contains("from w"));
    assert!(sent("select a from x").contains("(select a from x) as isolde_rows"));
}
