with r as (select 1 as n union all select 2) select sum(n) from r;
