//! The rules of InnoDB, with the pages of MySQL's and MariaDB's manuals.

use crate::citation::{quoted, section, silent};
use crate::rule::{Rule, rule};

pub(super) const CR: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-consistent-read.html";
const IL: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-transaction-isolation-levels.html";
const LS: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-locks-set.html";
const LK: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-locking.html";
const LR: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-locking-reads.html";
const ST: &str = "https://dev.mysql.com/doc/refman/8.4/en/commit.html";
const EH: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-error-handling.html";
const SP: &str = "https://dev.mysql.com/doc/refman/8.4/en/savepoint.html";
const FK: &str = "https://dev.mysql.com/doc/refman/8.4/en/ansi-diff-foreign-keys.html";
const IN: &str = "https://dev.mysql.com/doc/refman/8.4/en/insert.html";
const CH: &str = "https://dev.mysql.com/doc/refman/8.4/en/constraint-invalid-data.html";
const UP: &str = "https://dev.mysql.com/doc/refman/8.4/en/update.html";

macro_rules! maria {
    ($page:literal) => {
        concat!("https://mariadb.com/docs/server/reference/sql-statements/", $page)
    };
}
const MARIA_RR: &str = maria!("transactions/transactions-repeatable-read");
const MARIA_RC: &str = maria!("transactions/transactions-read-committed");
const MARIA_SET: &str = maria!("transactions/set-transaction");
const MARIA_COMMIT: &str = maria!("transactions/commit");
const MARIA_START: &str = maria!("transactions/start-transaction");
const MARIA_UPDATE: &str = maria!("data-manipulation/changing-deleting-data/update");
const MARIA_FOR_UPDATE: &str = maria!("data-manipulation/selecting-data/for-update");
const MARIA_SELECT: &str = maria!("data-manipulation/selecting-data/select");
const MARIA_NOWAIT: &str = maria!("transactions/wait-and-nowait");
const MARIA_DUPLICATE: &str =
    maria!("data-manipulation/inserting-loading-data/insert-default-duplicate-values");
const MARIA_UPSERT: &str =
    maria!("data-manipulation/inserting-loading-data/insert-on-duplicate-key-update");
const MARIA_CONSTRAINT: &str = maria!("data-definition/constraint");
const MARIA_SAVEPOINT: &str = maria!("transactions/savepoint");
const MARIA_ROLLBACK: &str = maria!("transactions/rollback");

pub static RULES: &[&Rule] = &[
    &I1, &I2, &I3, &I4, &I5, &I6, &I7, &I8, &I9, &I10, &I11, &I12, &I14, &I18, &I19, &I20, &I21,
    &I22, &I27, &I29, &I30, &I31, &M2,
];

pub static I1: Rule = rule(
    "I1",
    "the first read creates the read view",
    section(CR, "Consistent Nonlocking Reads"),
    "at REPEATABLE READ the first plain SELECT creates the read view that all later ones use",
)
.ranked(4)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_RR,
        "All consistent reads within the same transaction read the snapshot established by \
             the first read.",
    ),
)]);
pub static I2: Rule = rule(
    "I2",
    "one read view per statement",
    section(CR, "Consistent Nonlocking Reads"),
    "at READ COMMITTED each plain SELECT sees what was committed when it began",
)
.ranked(4)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_RC,
        "Each consistent read, even within the same transaction, sets and reads its own fresh \
             snapshot.",
    ),
)]);
pub static I3: Rule = rule(
    "I3",
    "dirty reads",
    section(IL, "Transaction Isolation Levels"),
    "at READ UNCOMMITTED a plain SELECT sees the newest version of each row, committed or not",
)
.ranked(3)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_SET,
        "SELECT statements are performed in a non-locking fashion, but a possible earlier \
             version of a row might be used.",
    ),
)]);
pub static I4: Rule = rule(
    "I4",
    "reads lock at SERIALIZABLE",
    section(IL, "Transaction Isolation Levels"),
    "at SERIALIZABLE a plain SELECT inside a transaction locks what it reads; an autocommitted \
     one is a consistent read",
)
.ranked(4)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_SET,
        "InnoDB implicitly converts all plain SELECT statements to SELECT ... LOCK IN SHARE \
             MODE if autocommit is disabled",
    ),
)]);
pub static I5: Rule = rule(
    "I5",
    "own writes",
    section(CR, "Consistent Nonlocking Reads"),
    "a transaction sees what its own earlier statements wrote; except at READ UNCOMMITTED no \
     other transaction does until it commits",
)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_COMMIT,
        "The COMMIT statement ends a transaction, saving any changes to the data so that they \
             become visible to subsequent transactions.",
    ),
)]);
pub static I6: Rule = rule(
    "I6",
    "writes read the newest committed rows",
    section(CR, "Consistent Nonlocking Reads"),
    "UPDATE, DELETE and locking reads see the newest committed rows, whatever the read view of \
     the transaction shows",
)
.ranked(2)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_SET,
        "locking reads (SELECT ... FOR UPDATE), UPDATE, and DELETE statements read the latest \
             committed version of rows",
    ),
)]);
pub static I7: Rule = rule(
    "I7",
    "consistent snapshot",
    quoted(ST, "The only isolation level that permits a consistent read is REPEATABLE READ."),
    "START TRANSACTION WITH CONSISTENT SNAPSHOT creates the read view immediately, at REPEATABLE \
     READ",
)
.ranked(3)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_START,
        "The WITH CONSISTENT SNAPSHOT option starts a consistent read for storage engines \
             such as InnoDB that can do so",
    ),
)]);
pub static I8: Rule = rule(
    "I8",
    "an empty read creates no read view",
    silent(CR),
    "a SELECT whose condition cannot hold is answered without reading rows and creates no read \
     view; the next SELECT does",
)
.ranked(3)
.undocumented(
    "the manual says that the first consistent read creates the read view, and does not mention \
     reads that the optimizer answers",
    "mysql/empty-read-makes-no-view",
)
.elsewhere(&[("mariadb", silent(MARIA_RR))]);
pub static I9: Rule = rule(
    "I9",
    "consistent reads inside writes",
    section(LS, "Locks Set by Different SQL Statements in InnoDB"),
    "below REPEATABLE READ the SELECT inside an INSERT, REPLACE or UPDATE takes no locks and \
     sees what a plain SELECT would",
)
.ranked(1)
.undocumented(
    "MariaDB's pages do not say what the SELECT inside a write reads, or that it waits for no row",
    "mariadb/insert-select-does-not-wait",
)
.elsewhere(&[("mariadb", silent(MARIA_SET))]);
pub static I10: Rule = rule(
    "I10",
    "updates that change nothing",
    silent(UP),
    "an UPDATE that leaves a row unchanged does not count it; if it does not read all columns \
     that it sets, it still writes a version, and from then on the read view shows the newest \
     version of the row",
)
.ranked(3)
.holds_for("mysql mariadb@10.0-10.2")
.undocumented(
    "the manual says that MySQL notices when a column is set to its present value, and does not \
     update it",
    "mysql/update-that-changes-nothing",
)
.elsewhere(&[("mariadb", silent(MARIA_UPDATE))]);
pub static I11: Rule = rule(
    "I11",
    "row locks",
    section(LS, "Locks Set by Different SQL Statements in InnoDB"),
    "a statement waits for a row that another transaction has inserted, changed or locked in a \
     conflicting mode; any scanned row may be locked",
)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_FOR_UPDATE,
        "A lock is acquired on the rows, and other transactions are prevented from writing \
             the rows",
    ),
)]);
pub static I12: Rule = rule(
    "I12",
    "gap locks",
    section(LK, "Gap Locks"),
    "from REPEATABLE READ on a write, a locking read and, at SERIALIZABLE, every read also locks \
     the gaps of the index range that it scans: an INSERT into such a gap waits; gap locks do not \
     conflict with each other, so two transactions can have locked the same gap",
)
.ranked(1)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_SET,
        "InnoDB locks the index range scanned, using gap locks or next-key (gap plus \
             index-record) locks to block insertions by other sessions into the gaps covered by \
             the range",
    ),
)]);
pub static I14: Rule = rule(
    "I14",
    "semi-consistent read",
    section(IL, "Transaction Isolation Levels"),
    "below REPEATABLE READ an UPDATE that reaches a locked row tests its last committed version: \
     if that does not match, the row is skipped; if it does, the UPDATE waits and tests the row \
     again",
)
.ranked(0)
.undocumented(
    "MariaDB's page on SET TRANSACTION says that DELETE does the same; a DELETE waits",
    "mariadb/delete-waits-at-read-committed",
)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_SET,
        "record locks for non-matching rows are released after MariaDB has evaluated the \
             WHERE condition",
    ),
)]);
pub static I18: Rule = rule(
    "I18",
    "unique keys cover all rows",
    section(LS, "Locks Set by Different SQL Statements in InnoDB"),
    "a statement waits for transactions that are writing or deleting its unique key, and fails \
     with 1062 if the key is taken, even by a row that the read view does not show; only the \
     statement is undone",
)
.ranked(2)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_DUPLICATE,
        "By default, if you try to insert a duplicate row and there is a UNIQUE index, INSERT \
             stops",
    ),
)]);
pub static I19: Rule = rule(
    "I19",
    "upserts act on the newest committed rows",
    quoted(
        IN,
        "INSERT with an ON DUPLICATE KEY UPDATE clause enables existing rows to be updated if \
             a row to be inserted would cause a duplicate value",
    ),
    "IGNORE, REPLACE and ON DUPLICATE KEY UPDATE act on the row that has the key now, even if \
     the read view does not show it",
)
.ranked(1)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_UPSERT,
        "if it finds a duplicate unique or primary key, will instead perform an UPDATE",
    ),
)]);
pub static I20: Rule = rule(
    "I20",
    "foreign keys",
    section(FK, "FOREIGN KEY Constraint Differences"),
    "a foreign key is checked row by row against the newest committed rows; the referenced row \
     is locked",
)
.ranked(2)
.elsewhere(&[(
    "mariadb",
    quoted(MARIA_CONSTRAINT, "When a statement violates a constraint, MariaDB throws an error."),
)]);
pub static I21: Rule = rule(
    "I21",
    "rollback to a savepoint",
    section(SP, "SAVEPOINT, ROLLBACK TO SAVEPOINT, and RELEASE SAVEPOINT Statements"),
    "ROLLBACK TO undoes what was written after the savepoint",
)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_SAVEPOINT,
        "it undoes the changes performed after the specified savepoint, and erases all \
             subsequent savepoints",
    ),
)]);
pub static I22: Rule = rule(
    "I22",
    "deadlock",
    section(EH, "InnoDB Error Handling"),
    "if transactions wait for each other, one of them is rolled back with 1213",
)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_SET,
        "ER_CHECKREAD is treated similarly to a deadlock: the entire transaction is rolled \
             back",
    ),
)]);
pub static I27: Rule = rule(
    "I27",
    "rollback",
    quoted(ST, "ROLLBACK rolls back the current transaction, canceling its changes."),
    "a rollback leaves no trace of what it undoes",
)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_ROLLBACK,
        "destroying any changes to SQL-data so that they never become visible to subsequent \
             transactions",
    ),
)]);
pub static I28: Rule = rule(
    "I28",
    "locks give a serial order",
    section(LK, "InnoDB Locking"),
    "at SERIALIZABLE everything that is read or written stays locked, including gaps, so the \
     commit order is a serial order",
)
.ranked(2)
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_FOR_UPDATE,
        "If the isolation level is set to SERIALIZABLE, all plain SELECT statements are \
             converted to SELECT ... LOCK IN SHARE MODE.",
    ),
)]);
pub static I29: Rule = rule(
    "I29",
    "constraints",
    section(CH, "Enforced Constraints on Invalid Data"),
    "a row that violates NOT NULL or CHECK fails its statement; IGNORE skips the row, or \
     replaces a NULL with the zero value of its type",
)
.elsewhere(&[(
    "mariadb",
    quoted(MARIA_CONSTRAINT, "When a statement violates a constraint, MariaDB throws an error."),
)]);
pub static I30: Rule = rule(
    "I30",
    "SKIP LOCKED",
    section(LR, "Locking Read Concurrency with NOWAIT and SKIP LOCKED"),
    "a locking read with SKIP LOCKED leaves out the rows that other transactions have locked, and \
     does not wait for them; a row that they only scanned may be locked as well",
)
.ranked(1)
.holds_for("mysql@8.0.1- mariadb@10.6-")
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_SELECT,
        "This causes rows that couldn't be locked (LOCK IN SHARE MODE or FOR UPDATE) to be \
             excluded from the result set.",
    ),
)]);
pub static I31: Rule = rule(
    "I31",
    "NOWAIT",
    section(LR, "Locking Read Concurrency with NOWAIT and SKIP LOCKED"),
    "a locking read with NOWAIT fails instead of waiting for a row that another transaction has \
     locked, in MySQL with 3572, in MariaDB with 1205",
)
.ranked(1)
.holds_for("mysql@8.0.1- mariadb@10.3-")
.elsewhere(&[(
    "mariadb",
    quoted(
        MARIA_NOWAIT,
        "NOWAIT, in which case the statement will immediately fail if the lock cannot be \
             obtained",
    ),
)]);
pub static M2: Rule = rule(
    "M2",
    "snapshot isolation",
    quoted(
        MARIA_SET,
        "If an UPDATE or DELETE attempts to modify a row that has been changed by a \
             concurrent transaction since your snapshot was established, the operation is \
             rejected.",
    ),
    "with innodb_snapshot_isolation a transaction that writes or locks a row changed after its \
     read view is rolled back with 1020",
)
.ranked(0)
.holds_for("mariadb@10.6.18-");
