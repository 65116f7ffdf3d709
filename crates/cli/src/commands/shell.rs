//! `isolde shell`: opens several clients of one private server, side by side.

use super::Outcome;
use super::context::Context;
use super::server::{introduce, start, wait_for_end};
use crate::args::shell::ShellArgs;
use crate::exit_code::{ExitCode, Failure};
use crate::interrupt;
use isolde_engines::connect::client_command::ClientCommand;
use std::io::{IsTerminal, stdin, stdout};
use std::process::{Command, Stdio};
use std::time::Duration;

pub fn run(context: &Context<'_>, args: &ShellArgs) -> Outcome {
    let target = context.parse_target(&args.target)?;
    let engine = start(context, &target, args.setup.as_deref())?;
    let client = ClientCommand::of(engine.as_ref()).expect("start has checked that there is one");
    if !client.is_installed() {
        return Err(Failure::new(ExitCode::Unreachable, client.missing()));
    }
    let named: Vec<ClientCommand> =
        (1..=args.clients).map(|i| client.named(&format!("s{i}"))).collect();
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
        context.console.print("Run each of these in its own terminal:");
        for command in &named {
            context.console.print(&format!("  {}", command.line()));
        }
    }
    wait_for_end(context);
    Ok(ExitCode::Success)
}

/// A private tmux server: the user's tmux is not touched, and ending the server
/// ends every client.
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

    fn execute(&self, arguments: &[&str]) -> Result<(), Failure> {
        self.execute_command(self.command(arguments))
    }

    fn execute_command(&self, mut command: Command) -> Result<(), Failure> {
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
            // In the environment, which other users cannot read.
            if let Some((variable, password)) = &pane.password {
                command.env(variable, password.reveal());
            }
            self.execute_command(command)?;
            // Rearranged after each split, or the last panes find no room.
            let layout = if named.len() <= 3 { "even-horizontal" } else { "tiled" };
            self.execute(&["select-layout", "-t", "isolde", layout])?;
        }
        let hint = format!(" {title}  Ctrl-B arrow: next pane  Ctrl-B d: stop and remove ");
        for setting in [
            ["status-left", &hint],
            ["status-left-length", "120"],
            ["status-right", ""],
            ["window-status-format", ""],
            ["window-status-current-format", ""],
            ["mouse", "on"],
        ] {
            self.execute(&["set-option", "-g", setting[0], setting[1]])?;
        }
        self.execute(&["select-pane", "-t", "isolde.0"])?;
        self.attach()
    }

    fn attach(&self) -> Outcome {
        let failed = |e: std::io::Error| Failure::new(ExitCode::Unreachable, format!("tmux: {e}"));
        let mut attached =
            self.command(&["attach-session", "-t", "isolde"]).spawn().map_err(failed)?;
        while attached.try_wait().map_err(failed)?.is_none() {
            if interrupt::is_requested() {
                let _ = self.execute(&["kill-server"]);
                let _ = attached.wait();
                return Ok(ExitCode::Success);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // Its error message is on the terminal already.
        match attached.wait().map_err(failed)?.success() {
            true => Ok(ExitCode::Success),
            false => Err(Failure::new(ExitCode::Unreachable, "tmux could not attach")),
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // tmux does not remove the file of its socket.
        let place = self.command(&["display-message", "-p", "#{socket_path}"]).output();
        let _ = self.execute(&["kill-server"]);
        let place = place.ok().map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string());
        let place = place.filter(|p| p.ends_with(&self.socket)).unwrap_or_else(|| {
            let folder = std::env::var("TMUX_TMPDIR").unwrap_or_else(|_| "/tmp".into());
            format!("{folder}/tmux-{}/{}", rustix::process::getuid().as_raw(), self.socket)
        });
        let _ = std::fs::remove_file(place);
    }
}
