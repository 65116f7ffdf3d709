insert into t (id, a) values (1, 'it''s'), (2, null) on conflict (id) do update set a = excluded.a;
