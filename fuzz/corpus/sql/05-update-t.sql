update t set a = case when b is null then 'n' else upper(a) end, b = b * 2 where id between 1 and 5 returning id;
