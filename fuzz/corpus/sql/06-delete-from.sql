delete from t where not exists (select 1 from t as u where u.id = t.id - 1) limit 3;
