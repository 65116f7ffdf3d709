create trigger g before insert on t for each row begin set new.a = 1; end; select $f$ ; $f$, `a;b`, "c;d", e'\';' /* ; /* nested */ */ # ;
;