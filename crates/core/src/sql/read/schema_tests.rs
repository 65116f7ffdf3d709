use super::schema;
use crate::sql::dialect::Family;
use crate::sql::{Literal, Numbered, OnDelete, Type};

#[test]
fn a_setup_is_read_to_its_tables() {
    let texts = [
        "drop table if exists t, u",
        "create table t (id int primary key auto_increment, a decimal(5,1) default 1.5 not null,
         b int as (id + 1), c varchar(10) unique comment 'x', key (a), unique key k (a, id),
         check (id > 0)) engine=InnoDB comment='it'",
        "create table if not exists u (x int, y int, foreign key (x) references t (id) on delete cascade,
         constraint f foreign key (y) references t (id) on delete restrict on update cascade)",
        "insert into t values (1)",
        "create index i on u (y desc)",
    ];
    let found = schema(texts, Family::Mysql);
    assert_eq!(found.unread, []);
    let [t, u] = found.schema.tables.as_slice() else { panic!("{:?}", found.schema) };
    assert_eq!(t.primary_key, ["id"]);
    assert_eq!(t.columns[0].numbered, Some(Numbered::AutoIncrement));
    assert!(t.columns[0].not_null && t.columns[1].not_null && !t.columns[2].not_null);
    assert_eq!(t.columns[1].of_type, Type::Other("decimal(5,1)".into()));
    assert_eq!(t.columns[1].default, Some(Literal::Number("1.5".into())));
    assert_eq!(t.columns[2].generated.as_ref().map(|g| g.stored), Some(false));
    assert_eq!((t.unique.len(), t.indexes.len(), t.checks.len()), (1, 2, 1));
    assert_eq!((t.indexes[0].name.as_str(), t.indexes[1].unique), ("a", true));
    assert_eq!(t.options, ["engine = innodb"]);
    let actions: Vec<_> = u.foreign_keys.iter().map(|f| (f.on_delete, f.update_cascades)).collect();
    assert_eq!(actions, [(OnDelete::Cascade, false), (OnDelete::Restrict, true)]);
    assert!(u.indexes[0].parts[0].descending);
}

#[test]
fn a_foreign_key_without_a_column_means_the_parents_key() {
    let texts = ["create table p (k int primary key)", "create table c (f int references p)"];
    let found = schema(texts, Family::Postgres);
    assert_eq!(found.schema.tables[1].foreign_keys[0].parent_column, "k");
    let alone = schema([texts[1]], Family::Postgres);
    assert!(alone.schema.tables.is_empty());
    assert_eq!(alone.unread[0].table.as_deref(), Some("c"));
}

#[test]
fn what_is_said_of_a_table_beyond_what_there_is_room_for_hides_it() {
    let of = |family, texts: &[&str]| {
        let found = schema(texts.iter().copied(), family);
        assert_eq!(found.schema.tables, [], "{texts:?}");
        found.unread.iter().map(|u| u.table.clone()).collect::<Vec<_>>()
    };
    let t = [Some("t".to_string())];
    for (family, text) in [
        (Family::Mysql, "create table t (a int references u (b))"),
        (Family::Mysql, "create table t (a varchar(10) collate utf8mb4_bin)"),
        (Family::Mysql, "create table t (a int, key (a(10)))"),
        (Family::Mysql, "create table t (a int, fulltext key (a))"),
        (Family::Mysql, "create table t (a timestamp on update current_timestamp)"),
        (Family::Mysql, "create table t (a enum('X'))"),
        (
            Family::Mysql,
            "create table t (a int) partition by range (a) (partition p values less than (3))",
        ),
        (Family::Mysql, "create table t (a int) partition by hash (a) partitions 3"),
        (Family::Mysql, "create temporary table t (a int)"),
        (Family::Mysql, "create table t like u"),
        (Family::Mysql, "create table t (a int, primary key (a) nonclustered)"),
        (Family::Postgres, "create table t (a int, b int, foreign key (a, b) references u (a, b))"),
        (Family::Postgres, "create table t (a int references u (a) deferrable initially deferred)"),
        (Family::Postgres, "create table t (a int references u (a) on delete set default)"),
        (Family::Postgres, "create table t (a timestamp default now())"),
        (Family::Postgres, "create table t (a int) inherits (u)"),
        (Family::Postgres, "create table t as select 1"),
        (Family::Postgres, "create unlogged table t (a int)"),
        (Family::Postgres, "create table t (a int, exclude using gist (a with =))"),
        (Family::Postgres, "create table t (a int, primary key (b))"),
    ] {
        assert_eq!(of(family, &[text]), t, "{text}");
    }
    let plain = "create table t (a int)";
    for later in ["alter table t add b int", "create index i on t using gin (a)", plain] {
        assert_eq!(of(Family::Postgres, &[plain, later]), t, "{later}");
    }
    let trigger = "create trigger g after insert on t for each row execute function f()";
    let found = schema([plain, trigger], Family::Postgres);
    assert_eq!(found.schema.tables.len(), 1);
    assert_eq!(found.unread.len(), 1);
    assert_eq!(found.unread[0].table, None);
}
