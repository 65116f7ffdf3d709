select distinct t.a, u.b from t left join t as u on t.id = u.id where t.a like 'x%' or -t.b < 1e3 order by 1 desc limit 5 offset 2 for update skip locked;
