-- Who may do what in Dragoman's database. Run once in it, as a superuser; passwords are set apart from this file.
--   dragoman_owner  makes and changes the tables: `dragoman migrate upgrade`
--   dragoman        reads and writes rows, and nothing else: servers, workers and the other commands
CREATE ROLE dragoman_owner LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE;
CREATE ROLE dragoman LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE;

REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO dragoman_owner;
GRANT USAGE ON SCHEMA public TO dragoman;

-- What the owner makes from now on is open to the servers.
ALTER DEFAULT PRIVILEGES FOR ROLE dragoman_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO dragoman;
ALTER DEFAULT PRIVILEGES FOR ROLE dragoman_owner IN SCHEMA public
    GRANT USAGE ON SEQUENCES TO dragoman;
