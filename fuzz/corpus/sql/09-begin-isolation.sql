begin isolation level repeatable read; savepoint s1; rollback to savepoint s1; commit;
