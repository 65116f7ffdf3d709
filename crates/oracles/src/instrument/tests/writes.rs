//! What instrumented writes reveal, and how they are written for other engines.

use super::*;

#[test]
fn writes_leave_their_number_and_name_written_and_deleted_versions() {
    let mut s = Session::new();
    assert_eq!(s.touched("insert into t values (7, 70, 'n'), (8, 80, 'm')"), "0s1.0@[1] 0s1.1@[1]");
    assert_eq!(s.touched("update t set b = b + 1 where a > 6"), "0s1.0@[1,2] 0s1.1@[1,2]");
    assert_eq!(s.touched("delete from t where a = 7"), "0s1.0@[1,2]");
    let upsert = "insert into t (a, b) values (8, 1) on conflict (a) do update set b = 5";
    assert_eq!(s.touched(upsert), "0s1.1@[1,2,4]");
    assert_eq!(s.touched("insert into u select a, b from t where a = 2"), "1s5:0r1+@[5]");
    // REPLACE: first what it takes the place of, then what it wrote.
    assert_eq!(s.touched("replace into t (a, b) values (1, 3)"), "0r0@[] 0s6.0@[6]");
}

#[test]
fn a_row_keeps_the_versions_that_it_was_made_of() {
    let mut s = Session::new();
    s.run("update t set b = 1 where a = 2");
    let Some(ProbeResult::Rows(rows)) = s.run("insert into u select a, b from t where a = 2").pop()
    else {
        panic!("rows")
    };
    assert_eq!(shown(&rows[0].origin), "0r1@[1]");
    assert_eq!(rows[0].entry.inserted_by(), Some(2));
    assert_eq!(rows[0].entry.table(), Some(1));
}

#[test]
fn mysql_marks_only_changed_rows_and_keeps_the_previous_version() {
    let sql = observed("mysql", 4, "update t set b = 2 where a = 1").unwrap().join("; ");
    let image = "coalesce(hex(cast(t.a as char)), '-'), '/', coalesce(hex(cast(t.b as char)), '-'), \
                 '/', coalesce(hex(cast(t.c as char)), '-'), '/'";
    let equal = format!("concat('|', t.isolde_past_0) like concat('%|', {image}, '|4#')");
    let expected = format!(
        "update t set isolde_past_0 = concat(t.isolde_past_0, {image}, '|4#'), b = 2, \
         isolde_writes_0 = case when {equal} then t.isolde_writes_0 else \
         concat(t.isolde_writes_0, ',4') end, isolde_past_0 = case when {equal} then \
         left(t.isolde_past_0, length(t.isolde_past_0) - length(concat({image}, '|4#'))) else \
         left(t.isolde_past_0, length(t.isolde_past_0) - length('4#')) end where a = 1"
    );
    assert_eq!(sql, expected);
    let delete = observed("mysql", 5, "delete from t where a = 1").unwrap();
    assert!(delete[0].ends_with("from t where a = 1 for update"), "{}", delete[0]);
    assert_eq!(delete[1], "delete from t where a = 1");
    assert_eq!(observed("mariadb", 5, "delete from t where a = 1").unwrap().len(), 1);
}

#[test]
fn images_of_the_past_are_read_back() {
    let instrument = instrument("mysql");
    let row = vec![
        Value::Text("0s3.0@,3,5,9".into()),
        Value::Text(String::new()),
        Value::Text("31/3130/-/|32/-/78/|".into()),
        Value::Int(2),
        Value::Int(30),
        Value::Null,
    ];
    let what = RowsOf::Stored;
    let probe = Probe::Rows { own_columns: 0, table: 0, what, predicate: None };
    let ProbeResult::Rows(rows) = instrument.decode(&probe, &[row]) else { panic!("rows") };
    let text = |t: &str| Value::Text(t.into());
    assert_eq!(rows[0].past[0], [text("1"), text("10"), Value::Null]);
    assert_eq!(rows[0].past[1], [text("2"), Value::Null, text("x")]);
    assert_eq!(rows[0].holds, [Value::Int(2), Value::Int(30), Value::Null]);
}

/// An UPDATE that may run as a join sees the old row or the assignments before it: the mark says
/// which. TiDB never looks at the assignments before.
#[test]
fn mark_of_an_update_with_a_subquery_depends_on_what_its_assignments_see() {
    let sql = "update t set b = b + 1, c = b where a in (select d from u)";
    let marked = observed("mysql", 4, sql).unwrap().join("; ");
    let sealed = "isolde_writes_0 = case when t.isolde_past_0 like '%|4#' then case when concat(";
    assert!(marked.contains(sealed), "{marked}");
    let old_row = "else case when (cast(t.b as signed) <=> cast(b + 1 as signed)) and \
                   (cast(t.c as binary) <=> cast(b as binary)) then t.isolde_writes_0 else";
    assert!(marked.contains(old_row), "{marked}");
    let marked = observed("tidb", 4, sql).unwrap().join("; ");
    assert!(marked.contains(&old_row["else ".len()..]) && !marked.contains("4#"), "{marked}");
    assert_eq!(observed("tidb", 4, "update t set b = 1").unwrap().len(), 1);
    let random = observed("tidb", 4, "update t set b = rand()").unwrap_err();
    assert!(random.0.contains("whether it changes a row"));
    assert!(observed("mysql", 4, "update t set b = rand()").is_ok(), "it is evaluated once");
}

#[test]
fn update_of_two_tables_marks_both() {
    let sql = "update t join u on a = d set b = 1, e = 2";
    let marked = observed("mysql", 4, sql).unwrap().join("; ");
    for column in ["isolde_past_0", "isolde_writes_0", "isolde_past_1", "isolde_writes_1"] {
        assert!(marked.contains(&format!("{column} = ")), "{marked}");
    }
    assert!(marked.contains("concat(u.isolde_writes_1, ',4')"), "{marked}");
    let one = observed("mysql", 4, "update t join u on a = d set b = 1").unwrap().join("; ");
    assert!(!one.contains("isolde_writes_1"), "{one}");
}

#[test]
fn returning_everything_returns_the_columns_of_the_statement() {
    let s = Session::new();
    let all = parsed("update t set b = 0 where a = 1 returning *", Family::Sqlite);
    let sent = s.instrument.statement(1, &all).unwrap().pop().unwrap();
    let rows = s.rows(&sent.statement);
    let text = |t: &str| Value::Text(t.into());
    assert_eq!(sent.probe.own_row(&rows[0]).unwrap(), [Value::Int(1), Value::Int(0), text("x")]);
    let joined = "update t set b = 0 from u where a = d returning *";
    let joined = observed("postgres", 1, joined).unwrap().join("; ");
    assert!(joined.contains("returning t.a, t.b, t.c, u.d, u.e, (t.isolde_row_0"), "{joined}");
}

#[test]
fn inserted_rows_of_any_query_have_names_of_their_own() {
    let mut s = Session::new();
    // Each from one row of each table, of which one may be missing.
    let joined = "insert into u select t.a, u.e from t left join u on t.a = u.d where t.a > 1";
    assert_eq!(s.touched(joined), "1s1:0r1+1r1+@[1] 1s1:0r2++@[1]");
    let grouped = "insert into u select b, count(*) from t group by b order by 1, 2";
    assert_eq!(s.touched(grouped), "1s2:1@[2] 1s2:2@[2]");
    assert_eq!(s.touched("insert into u select distinct b, b from t"), "1s3:1@[3] 1s3:2@[3]");
    assert_eq!(s.touched("insert into u select distinct b + 1, 0 from t"), "1s4:1@[4] 1s4:2@[4]");
    let combined = "insert into u select a, 1 from t where a = 1 union select b, null from t";
    assert_eq!(s.touched(combined), "1s5:1@[5] 1s5:2@[5] 1s5:3@[5]");
    let inside = "insert into u select x.a, 1 from (select a from t where b = 20) as x";
    assert_eq!(s.touched(inside), "1s6:1@[6] 1s6:2@[6]");
    assert_eq!(s.rows(&parsed("select count(*) from u where d = 21", Family::Sqlite)).len(), 1);
}

#[test]
fn inserted_rows_keep_the_versions_that_they_come_from() {
    let mut s = Session::new();
    let mut origin = |sql: &str| match s.run(sql).pop() {
        Some(ProbeResult::Rows(rows)) => shown(&rows[0].origin),
        other => panic!("{other:?}"),
    };
    assert_eq!(origin("insert into u select b, count(*) from t group by b order by 1"), "0r0@[]");
    let derived = "insert into u select x.a, 1 from (select a from t where b = 10) as x";
    assert_eq!(origin(derived), "0r0@[]");
    assert_eq!(
        origin("insert into u values (1, (select max(b) from t where a < 3))"),
        "0r0@[] 0r1@[]"
    );
    let subquery = "insert into u select a, (select max(e) from u where d = 2) from t where a = 1";
    assert_eq!(origin(subquery), "0r0@[] 1r1@[]");
}

/// Where subqueries of writes lock what they read, repeating one that is not evaluated would lock
/// more.
#[test]
fn subqueries_of_writes_are_not_repeated_where_they_lock() {
    let sql = "insert into u values (1, coalesce(1, (select max(b) from t)))";
    let mysql = observed("mysql", 1, sql).unwrap().join("; ");
    assert_eq!(mysql.matches("select").count(), 1, "{mysql}");
    let postgres = observed("postgres", 1, sql).unwrap().join("; ");
    assert_eq!(postgres.matches("select").count(), 2, "{postgres}");
    let s = Session::new();
    let why = s.unobserved("update t set b = 1 where a in (select d from u)");
    assert_eq!(why, ["a subquery of a write reads rows"]);
    assert_eq!(s.unobserved("update t set b = 1 where a = 2"), Vec::<&str>::new());
}
