create table t (id int primary key, a varchar(20) not null, b int, unique (a, b));
