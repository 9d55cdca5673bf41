#!/bin/sh
# Run by the PostgreSQL image when its volume is new: Dragoman's database with its two roles, and those of Temporal.
set -eu

sql() { psql --username postgres --no-psqlrc --quiet --set ON_ERROR_STOP=1 "$@"; }

createdb --username postgres --encoding UTF8 --template template0 dragoman
sql --dbname dragoman --file /etc/dragoman/roles.sql
sql --dbname dragoman --command "REVOKE ALL ON DATABASE dragoman FROM PUBLIC; \
    GRANT CONNECT ON DATABASE dragoman TO dragoman, dragoman_owner"
sql --dbname postgres --command "CREATE ROLE temporal LOGIN"
for database in temporal temporal_visibility; do
    createdb --username postgres --owner temporal "$database"
    sql --dbname postgres --command "REVOKE ALL ON DATABASE $database FROM PUBLIC"
done

# By a variable and from standard input: neither the list of processes nor the log shows a password.
for role in dragoman dragoman_owner temporal; do
    file=/run/secrets/$(printf %s "$role" | tr _ -)-password
    sql --dbname postgres --set role="$role" --set password="$(cat "$file")" <<'SQL'
ALTER ROLE :"role" PASSWORD :'password';
SQL
done
