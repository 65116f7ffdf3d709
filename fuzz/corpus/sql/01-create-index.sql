create index i on t (a) where b > 1;
