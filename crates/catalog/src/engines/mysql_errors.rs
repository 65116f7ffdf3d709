//! The meaning of the errors of MySQL's family.

use crate::error_class::{ErrorClass, ErrorEffect};
use crate::profile::{ErrorRule, error};

/// Errors about files and indexes that the server cannot read, or about an
/// inconsistent state: never caused by a statement.
const BROKEN: [&str; 12] = [
    "1033", // incorrect information in a file
    "1034", // an index is corrupt, try to repair it
    "1035", // the same of an old key file
    "1194", // a table is marked as crashed
    "1195", // and its repair failed
    "1712", // an index is corrupted
    "1728", // a system table is probably corrupted
    "1812", // a table's tablespace is missing
    "1815", // an internal error
    "1817", // an index is corrupt, in InnoDB's words
    "1877", // a table is missing, corrupt or contains bad data
    "1932", // MariaDB: a table that there is does not exist in the engine
];

/// Errors that MySQL and everything modelled on it share.
pub fn mysql_errors() -> Vec<ErrorRule> {
    let statement = ErrorEffect::Statement;
    let mut rules = vec![
        error("1213", ErrorClass::Deadlock, ErrorEffect::RolledBack),
        error("1205", ErrorClass::LockTimeout, statement),
        error("3572", ErrorClass::LockTimeout, statement),
        error("1020", ErrorClass::WriteConflict, ErrorEffect::RolledBack),
        error("1792", ErrorClass::ReadOnly, statement),
        error("1317", ErrorClass::Cancelled, statement),
        error("3024", ErrorClass::Cancelled, statement),
        error("1969", ErrorClass::Cancelled, statement),
        error("1053", ErrorClass::Lost, ErrorEffect::Lost),
        error("1927", ErrorClass::Lost, ErrorEffect::Lost),
        error("4031", ErrorClass::Lost, ErrorEffect::Lost),
    ];
    for code in
        ["1062", "1048", "1364", "1406", "1451", "1452", "1216", "1217", "3819", "4025", "1264"]
    {
        rules.push(error(code, ErrorClass::Constraint, statement));
    }
    for code in [
        "1064", "1146", "1054", "1305", "1235", "1149", "1049", "1091", "1050", "1051", "1061",
        "1093", "8048",
    ] {
        rules.push(error(code, ErrorClass::Rejected, statement));
    }
    for code in BROKEN {
        rules.push(error(code, ErrorClass::Internal, statement));
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corrupt_index_is_the_engine_s_fault_and_a_duplicate_key_is_not() {
        let class = |code: &str| mysql_errors().into_iter().find(|r| r.code == code).unwrap().class;
        for broken in ["1034", "1712", "1815", "1877", "1932"] {
            assert_eq!(class(broken), ErrorClass::Internal, "{broken}");
        }
        assert_eq!(class("1062"), ErrorClass::Constraint);
        let mut codes: Vec<String> = mysql_errors().into_iter().map(|r| r.code).collect();
        codes.sort();
        let all = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), all, "a code with two meanings");
    }
}
