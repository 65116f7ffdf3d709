insert into t select id + 10, a, b from t where id in (select max(id) from t);
