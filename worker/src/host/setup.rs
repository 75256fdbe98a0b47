//! How the machine is set up.

use std::{fs, path::Path};

use iofleet_shared::facts::MachineSetup;
use rustix::process::{Resource, getrlimit};

/// Reads it below the process file system and the sysfs tree.
pub(super) fn read(proc: &Path, sys: &Path) -> MachineSetup {
    let text = |path: &str| {
        let text = fs::read_to_string(sys.join("devices/system").join(path)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    MachineSetup {
        cpu_model: model(&fs::read_to_string(proc.join("cpuinfo")).unwrap_or_default()),
        governor: text("cpu/cpu0/cpufreq/scaling_governor"),
        clock_source: text("clocksource/clocksource0/current_clocksource"),
        open_files_max: getrlimit(Resource::Nofile).maximum,
        processes_max: getrlimit(Resource::Nproc).maximum,
    }
}

/// x86 calls it `model name`, POWER `cpu`; ARM has no name there.
fn model(cpuinfo: &str) -> Option<String> {
    let named = |wanted: &str| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == wanted).then(|| value.trim().to_owned())
        })
    };
    named("model name").or_else(|| named("cpu"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_name_themselves_in_their_own_ways() {
        let x86 = "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763\n";
        assert_eq!(model(x86).as_deref(), Some("AMD EPYC 7763"));
        assert_eq!(model("cpu\t\t: POWER9, altivec\n").as_deref(), Some("POWER9, altivec"));
        assert_eq!(model("processor\t: 0\nBogoMIPS\t: 50\n"), None);
    }

    #[test]
    fn what_is_not_there_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let setup = read(dir.path(), dir.path());
        assert_eq!((setup.cpu_model, setup.governor, setup.clock_source), (None, None, None));
        let path = dir.path().join("devices/system/clocksource/clocksource0");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("current_clocksource"), "hpet\n").unwrap();
        assert_eq!(read(dir.path(), dir.path()).clock_source.as_deref(), Some("hpet"));
    }
}
