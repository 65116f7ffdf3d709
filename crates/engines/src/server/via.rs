//! `--via podman|docker`: a server in a container, from the engine's official
//! image, where no other source has the version or the machine does not run
//! Linux.
//!
//! This module only builds the command line. It is tested as text: the
//! development machines have no container engine, so none of these commands has
//! been run there. `tests` below state what is certain about them.
//!
//! The container listens on loopback only, has its data in memory, is deleted
//! when it stops and has durability off, like every private server of Isolde:
//! isolation is tested, and one fsync per commit costs most of the time.

use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    Podman,
    Docker,
}

impl FromStr for Runtime {
    type Err = String;

    fn from_str(name: &str) -> Result<Runtime, String> {
        match name {
            "podman" => Ok(Runtime::Podman),
            "docker" => Ok(Runtime::Docker),
            _ => Err(format!("{name} is not a supported container engine: use podman or docker")),
        }
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(match self {
            Runtime::Podman => "podman",
            Runtime::Docker => "docker",
        })
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{engine} has no official image; --via works with {}", IMAGES.map(|i| i.engine).join(", "))]
pub struct NoImage {
    pub engine: String,
}

struct Image {
    engine: &'static str,
    /// Without a registry, which the runtime's own settings choose.
    name: &'static str,
    /// The port that the server listens on inside the container.
    port: u16,
    /// The data directory; kept in memory.
    data: &'static str,
    env: &'static [&'static str],
    /// Names of the variables that give the image its administrator's password.
    /// The command contains only the names; the values come from the
    /// environment of the runtime. Empty where an image has no such variables.
    password: &'static [&'static str],
    /// Arguments after the image: flags of the server.
    server: &'static [&'static str],
    /// The prefix of a version in the image's tags.
    tag_prefix: &'static str,
}

/// Root may log in from any host: the port is on loopback.
const IMAGES: [Image; 6] = [
    Image {
        engine: "postgres",
        name: "postgres",
        port: 5432,
        data: "/var/lib/postgresql",
        env: &["PGDATA=/var/lib/postgresql/isolde"],
        password: &["POSTGRES_PASSWORD"],
        server: &[
            "-c",
            "fsync=off",
            "-c",
            "full_page_writes=off",
            "-c",
            "synchronous_commit=off",
            "-c",
            "jit=off",
        ],
        tag_prefix: "",
    },
    Image {
        engine: "mariadb",
        name: "mariadb",
        port: 3306,
        data: "/var/lib/mysql",
        // Images before 10.6.5 know only the older name.
        env: &[],
        password: &["MARIADB_ROOT_PASSWORD", "MYSQL_ROOT_PASSWORD"],
        server: INNODB_WITHOUT_DURABILITY,
        tag_prefix: "",
    },
    Image {
        engine: "mysql",
        name: "mysql",
        port: 3306,
        data: "/var/lib/mysql",
        env: &["MYSQL_ROOT_HOST=%"],
        password: &["MYSQL_ROOT_PASSWORD"],
        server: INNODB_WITHOUT_DURABILITY,
        tag_prefix: "",
    },
    Image {
        engine: "tidb",
        name: "pingcap/tidb",
        port: 4000,
        data: "/isolde",
        env: &[],
        password: &[],
        server: &["--store=unistore", "--path=/isolde/data", "--host=0.0.0.0", "-P", "4000"],
        tag_prefix: "v",
    },
    Image {
        engine: "dolt",
        name: "dolthub/dolt-sql-server",
        port: 3306,
        data: "/var/lib/dolt",
        env: &["DOLT_ROOT_HOST=%"],
        password: &["DOLT_ROOT_PASSWORD"],
        server: &[],
        tag_prefix: "",
    },
    Image {
        engine: "cockroach",
        name: "cockroachdb/cockroach",
        port: 26257,
        data: "/isolde",
        env: &[],
        password: &[],
        server: &["start-single-node", "--insecure", "--store=type=mem,size=1GiB"],
        tag_prefix: "v",
    },
];

const INNODB_WITHOUT_DURABILITY: &[&str] =
    &["--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--skip-log-bin"];

/// The command that starts ENGINE@VERSION in the foreground as a container of
/// this name, reachable on 127.0.0.1 at `host_port`. Without a version it uses
/// the tag `latest`.
pub fn container_command(
    runtime: Runtime,
    engine: &str,
    version: Option<&str>,
    host_port: u16,
    name: &str,
) -> Result<Vec<String>, NoImage> {
    let image = IMAGES
        .iter()
        .find(|image| image.engine == engine)
        .ok_or_else(|| NoImage { engine: engine.to_string() })?;
    let tag = version.map_or("latest".to_string(), |version| {
        let bare = version.strip_prefix('v').unwrap_or(version);
        format!("{}{bare}", image.tag_prefix)
    });
    let mut command: Vec<String> = vec![runtime.to_string(), "run".into(), "--rm".into()];
    command.extend(["--name".into(), name.to_string()]);
    command.extend(["--publish".into(), format!("127.0.0.1:{host_port}:{}", image.port)]);
    // Writable for the user that the image runs its server as.
    command.extend(["--tmpfs".into(), format!("{}:rw,mode=1777", image.data)]);
    for variable in image.env {
        command.extend(["--env".into(), variable.to_string()]);
    }
    for variable in image.password {
        command.extend(["--env".into(), variable.to_string()]);
    }
    command.push(format!("{}:{tag}", image.name));
    command.extend(image.server.iter().map(|flag| flag.to_string()));
    Ok(command)
}

/// The variables from which the runtime takes a new password.
pub fn password_variables(engine: &str) -> &'static [&'static str] {
    IMAGES.iter().find(|image| image.engine == engine).map_or(&[], |image| image.password)
}

/// The command that stops the container of [`container_command`] and deletes
/// its data.
pub fn stop_command(runtime: Runtime, name: &str) -> Vec<String> {
    vec![runtime.to_string(), "rm".into(), "--force".into(), name.to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(engine: &str, version: Option<&str>) -> String {
        container_command(Runtime::Podman, engine, version, 40001, "isolde-1").unwrap().join(" ")
    }

    #[test]
    fn postgres_is_reachable_on_loopback_only_and_does_not_sync() {
        assert_eq!(
            command("postgres", Some("18")),
            "podman run --rm --name isolde-1 --publish 127.0.0.1:40001:5432 \
             --tmpfs /var/lib/postgresql:rw,mode=1777 \
             --env PGDATA=/var/lib/postgresql/isolde --env POSTGRES_PASSWORD \
             postgres:18 \
             -c fsync=off -c full_page_writes=off -c synchronous_commit=off -c jit=off"
        );
    }

    #[test]
    fn mysql_and_mariadb_do_not_flush_at_commit() {
        for engine in ["mysql", "mariadb"] {
            let command = command(engine, Some("8.4"));
            assert!(command.contains("--publish 127.0.0.1:40001:3306"));
            assert!(command.contains(&format!(" {engine}:8.4 ")));
            assert!(command.contains(" --env MYSQL_ROOT_PASSWORD "));
            assert!(command.ends_with(
                "--innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --skip-log-bin"
            ));
        }
    }

    #[test]
    fn tags_have_the_prefix_that_the_image_uses() {
        assert!(command("tidb", Some("8.5.3")).contains("pingcap/tidb:v8.5.3 "));
        assert!(command("cockroach", Some("v25.2.1")).contains("cockroachdb/cockroach:v25.2.1 "));
        assert!(command("dolt", None).ends_with("dolthub/dolt-sql-server:latest"));
    }

    #[test]
    fn an_engine_without_an_image_lists_those_that_have_one() {
        let error = container_command(Runtime::Docker, "turso", None, 1, "x").unwrap_err();
        assert_eq!(
            error.to_string(),
            "turso has no official image; --via works with \
             postgres, mariadb, mysql, tidb, dolt, cockroach"
        );
    }

    #[test]
    fn stopping_removes_the_container() {
        assert_eq!(
            stop_command(Runtime::Docker, "isolde-1").join(" "),
            "docker rm --force isolde-1"
        );
    }

    #[test]
    fn only_podman_and_docker_are_runtimes() {
        assert_eq!("podman".parse(), Ok(Runtime::Podman));
        assert!("lxc".parse::<Runtime>().unwrap_err().contains("podman or docker"));
    }
}
