//! `isolde shell`: several clients of one private server, side by side.

use super::server::{introduce, start, wait_until_told};
use super::{Context, Outcome};
use crate::exit_code::{ExitCode, Failure};
use crate::interrupt;
use isolde_engines::connect::client_command::ClientCommand;
use std::io::{IsTerminal, stdin, stdout};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

pub fn run(context: &Context<'_>, clients: u16, target: &str, setup: Option<&Path>) -> Outcome {
    let target = context.parse_target(target)?;
    let engine = start(context, &target, setup)?;
    let client = ClientCommand::of(engine.as_ref()).expect("start has checked that there is one");
    if !client.is_installed() {
        return Err(Failure::new(ExitCode::Unreachable, client.missing()));
    }
    let named: Vec<ClientCommand> = (1..=clients).map(|i| client.named(&format!("s{i}"))).collect();
    let on_screen = stdin().is_terminal() && stdout().is_terminal() && !context.json;
    if on_screen && let Some(tmux) = Tmux::find() {
        let info = engine.info();
        let title = format!("{} {}", info.engine, info.version);
        return tmux.side_by_side(&named, &title);
    }
    if context.json {
        let commands: Vec<String> = named.iter().map(ClientCommand::line).collect();
        context.console.print(&serde_json::json!({"clients": commands}).to_string());
    } else {
        introduce(context, engine.as_ref(), None);
        context.console.print("Run each of these in a terminal of its own:");
        for command in &named {
            context.console.print(&format!("  {}", command.line()));
        }
    }
    wait_until_told(context);
    Ok(ExitCode::Fine)
}

/// A tmux server of our own: nothing of the user's tmux is touched, and
/// ending it ends every client.
struct Tmux {
    socket: String,
}

impl Tmux {
    fn find() -> Option<Tmux> {
        let mut command = Command::new("tmux");
        let command = command.arg("-V").stdout(Stdio::null()).stderr(Stdio::null());
        let there = command.status().is_ok_and(|s| s.success());
        there.then(|| Tmux { socket: format!("isolde-{}", std::process::id()) })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.socket, "-f", "/dev/null"]).args(arguments);
        // Isolde may itself run inside tmux, which would refuse to nest.
        command.env_remove("TMUX");
        command
    }

    fn tell(&self, arguments: &[&str]) -> Result<(), Failure> {
        self.tell_with(self.command(arguments))
    }

    fn tell_with(&self, mut command: Command) -> Result<(), Failure> {
        let failed = |what: String| Failure::new(ExitCode::Unreachable, format!("tmux: {what}"));
        let output = command.output().map_err(|e| failed(e.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().into()))
    }

    fn side_by_side(&self, named: &[ClientCommand], title: &str) -> Outcome {
        for (i, pane) in named.iter().enumerate() {
            let text = pane.text();
            let how: &[&str] = match i {
                0 => &["new-session", "-d", "-s", "isolde", "-x", "200", "-y", "50"],
                _ => &["split-window", "-t", "isolde"],
            };
            let mut command = self.command(how);
            command.arg(&text);
            // Through the environment, which other users cannot list.
            if let Some((variable, password)) = &pane.password {
                command.env(variable, password.reveal());
            }
            self.tell_with(command)?;
            // Evened out each time, or the last ones find no room.
            let layout = if named.len() <= 3 { "even-horizontal" } else { "tiled" };
            self.tell(&["select-layout", "-t", "isolde", layout])?;
        }
        let hint = format!(" {title}  Ctrl-B arrow: next pane  Ctrl-B d: end and remove ");
        for setting in [
            ["status-left", &hint],
            ["status-left-length", "120"],
            ["status-right", ""],
            ["window-status-format", ""],
            ["window-status-current-format", ""],
            ["mouse", "on"],
        ] {
            self.tell(&["set-option", "-g", setting[0], setting[1]])?;
        }
        self.tell(&["select-pane", "-t", "isolde.0"])?;
        self.attach()
    }

    fn attach(&self) -> Outcome {
        let failed = |e: std::io::Error| Failure::new(ExitCode::Unreachable, format!("tmux: {e}"));
        let mut attached =
            self.command(&["attach-session", "-t", "isolde"]).spawn().map_err(failed)?;
        while attached.try_wait().map_err(failed)?.is_none() {
            if interrupt::asked() {
                let _ = self.tell(&["kill-server"]);
                let _ = attached.wait();
                return Ok(ExitCode::Fine);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // What it had to say stands on the terminal.
        match attached.wait().map_err(failed)?.success() {
            true => Ok(ExitCode::Fine),
            false => Err(Failure::new(ExitCode::Unreachable, "tmux could not attach")),
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // tmux leaves the file of its socket behind.
        let place = self.command(&["display-message", "-p", "#{socket_path}"]).output();
        let _ = self.tell(&["kill-server"]);
        let place = place.ok().map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string());
        let place = place.filter(|p| p.ends_with(&self.socket)).unwrap_or_else(|| {
            let folder = std::env::var("TMUX_TMPDIR").unwrap_or_else(|_| "/tmp".into());
            format!("{folder}/tmux-{}/{}", rustix::process::getuid().as_raw(), self.socket)
        });
        let _ = std::fs::remove_file(place);
    }
}
