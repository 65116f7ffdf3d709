//! The statements of the workloads, in the SQL of each family.

use super::draw::{Access, Operation};
use super::shape::Workload;
use isolde_sql::Family;

/// Reads all rows, to compare the final state.
pub(super) const ALL_ROWS: &str = "select k, v from isolde_items order by k";

pub(super) fn table(workload: Workload, family: Family) -> String {
    let value = match (workload, family) {
        (Workload::ListAppend, Family::Mysql) => "varchar(2000)",
        (Workload::ListAppend, _) => "text",
        (Workload::RwRegister, _) => "bigint",
    };
    format!("create table isolde_items (k bigint primary key, other bigint, v {value})")
}

/// The statement of an operation.
pub(super) fn statement(operation: Operation, workload: Workload, family: Family) -> String {
    let column = |how: Access| match how {
        Access::Key => "k",
        Access::Other => "other",
    };
    match operation {
        Operation::Read { key, how } => {
            format!("select v from isolde_items where {} = {key}", column(how))
        }
        Operation::Write { key, value, how } => {
            let new = match workload {
                Workload::ListAppend => format!("'{value}'"),
                Workload::RwRegister => value.to_string(),
            };
            let changed = match (workload, family) {
                (Workload::RwRegister, _) => new.clone(),
                (_, Family::Mysql) => format!("concat(v, ',{value}')"),
                _ => format!("isolde_items.v || ',{value}'"),
            };
            if how == Access::Other {
                return format!("update isolde_items set v = {changed} where other = {key}");
            }
            let insert =
                format!("insert into isolde_items (k, other, v) values ({key}, {key}, {new})");
            match family {
                Family::Mysql => format!("{insert} on duplicate key update v = {changed}"),
                _ => format!("{insert} on conflict (k) do update set v = {changed}"),
            }
        }
    }
}
