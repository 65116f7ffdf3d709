BUG_ID = "1"
LINK = "x"
DBMS = "MySQL"
SETUP_SQL_SCRIPT = """
create table t (a int);
"""

def get_scenarios(isolation_level):
    return ["""
conn_0> SET SESSION TRANSACTION ISOLATION LEVEL {isolation_level.value};
conn_0> begin;
conn_1> select 'it''s' -- x
;
"""]
