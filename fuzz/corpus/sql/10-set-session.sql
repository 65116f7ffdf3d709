set session transaction isolation level serializable; lock tables t write; start transaction with consistent snapshot;
