//! Files of keys, right and wrong, as a side finds them when it starts.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use iofleet_shared::transport::{Flaw, Identity, IdentityError, Role};
use tempfile::TempDir;

use crate::pki::{Authority, CLIENT, FUTURE, GOOD, PAST, Pair, SERVER};

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
}

fn worker_dir(authority: &Authority, pair: &Pair) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "authority.pem", &authority.certificate);
    write(dir.path(), "worker.pem", &pair.certificate);
    write(dir.path(), "worker.key", &pair.key);
    dir
}

fn refused(dir: &TempDir, role: Role) -> IdentityError {
    Identity::load(dir.path(), role).expect_err("these keys should not serve")
}

#[test]
fn good_files_are_loaded() {
    let fleet = Authority::new("fleet");
    let dir = worker_dir(&fleet, &fleet.issue(&[SERVER], GOOD));
    assert_eq!(Identity::load(dir.path(), Role::Worker).unwrap().role(), Role::Worker);
    // A fleet that changes its authority trusts both for a while.
    let next = Authority::new("fleet, next year");
    let both = format!("{}{}", next.certificate, fleet.certificate);
    write(dir.path(), "authority.pem", &both);
    assert!(Identity::load(dir.path(), Role::Worker).is_ok());
}

#[test]
fn missing_files_are_named_with_what_to_do() {
    let fleet = Authority::new("fleet");
    for name in ["authority.pem", "worker.pem", "worker.key"] {
        let dir = worker_dir(&fleet, &fleet.issue(&[SERVER], GOOD));
        fs::remove_file(dir.path().join(name)).unwrap();
        let text = refused(&dir, Role::Worker).to_string();
        assert!(text.contains(&format!("{}/{name}", dir.path().display())), "{text}");
        assert!(text.contains("iofleet keys init"), "{text}");
        assert!(text.contains("authority.pem, worker.pem and worker.key"), "{text}");
    }
}

#[test]
fn an_open_private_key_is_refused_with_the_command_to_close_it() {
    let fleet = Authority::new("fleet");
    let dir = worker_dir(&fleet, &fleet.issue(&[SERVER], GOOD));
    for mode in [0o640, 0o604, 0o620] {
        fs::set_permissions(dir.path().join("worker.key"), Permissions::from_mode(mode)).unwrap();
        let text = refused(&dir, Role::Worker).to_string();
        assert!(text.contains(&format!("mode {mode:04o}")), "{text}");
        assert!(text.contains(&format!("chmod 600 {}/worker.key", dir.path().display())), "{text}");
    }
    // Certificates are no secret.
    fs::set_permissions(dir.path().join("worker.key"), Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(dir.path().join("worker.pem"), Permissions::from_mode(0o644)).unwrap();
    assert!(Identity::load(dir.path(), Role::Worker).is_ok());
}

#[test]
fn every_flaw_of_ones_own_certificate_is_found_when_it_is_loaded() {
    let fleet = Authority::new("fleet");
    let foreign = Authority::new("somebody else");
    let namesake = Authority::new("fleet");
    for (pair, expected) in [
        (fleet.issue(&[SERVER], PAST), Flaw::Expired),
        (fleet.issue(&[SERVER], FUTURE), Flaw::NotYetValid),
        (foreign.issue(&[SERVER], GOOD), Flaw::Foreign),
        (namesake.issue(&[SERVER], GOOD), Flaw::Foreign),
        (fleet.issue(&[CLIENT], GOOD), Flaw::WrongRole),
        (fleet.issue(&[CLIENT, SERVER], GOOD), Flaw::WrongRole),
        (fleet.issue(&[], GOOD), Flaw::WrongRole),
    ] {
        let dir = worker_dir(&fleet, &pair);
        let error = refused(&dir, Role::Worker);
        let IdentityError::Flawed { flaw, path, .. } = &error else { panic!("{error}") };
        assert_eq!(*flaw, expected);
        assert_eq!(*path, dir.path().join("worker.pem"));
    }
    let dir = worker_dir(&fleet, &fleet.issue(&[SERVER], PAST));
    let text = refused(&dir, Role::Worker).to_string();
    assert!(text.contains("has expired (valid until Jan  1 00:00:00 2010"), "{text}");
    let dir = worker_dir(&fleet, &fleet.issue(&[CLIENT], GOOD));
    let text = refused(&dir, Role::Worker).to_string();
    assert!(text.contains("is for the wrong role (it is a coordinator's)"), "{text}");
}

#[test]
fn an_authority_that_is_over_is_named() {
    let fleet = Authority::over("fleet", PAST);
    let dir = worker_dir(&fleet, &fleet.issue(&[SERVER], GOOD));
    let error = refused(&dir, Role::Worker);
    let IdentityError::Flawed { flaw: Flaw::Expired, path, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*path, dir.path().join("authority.pem"));
}

#[test]
fn files_with_something_else_in_them_are_named() {
    let fleet = Authority::new("fleet");
    let pair = fleet.issue(&[SERVER], GOOD);
    for (name, text, words) in [
        ("authority.pem", "", "no certificate"),
        ("authority.pem", pair.certificate.as_str(), "no authority's"),
        ("worker.pem", pair.key.as_str(), "no certificate"),
        ("worker.pem", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----", "damaged"),
        ("worker.key", pair.certificate.as_str(), "no private key"),
    ] {
        let dir = worker_dir(&fleet, &pair);
        write(dir.path(), name, text);
        let error = refused(&dir, Role::Worker).to_string();
        assert!(error.contains(name) && error.contains(words), "{error}");
    }
    let dir = worker_dir(&fleet, &pair);
    fs::write(dir.path().join("worker.pem"), [0xff, 0xfe]).unwrap();
    let error = refused(&dir, Role::Worker).to_string();
    assert!(error.contains("no text"), "{error}");
}

#[test]
fn a_key_of_another_certificate_is_no_pair() {
    let fleet = Authority::new("fleet");
    let dir = worker_dir(&fleet, &fleet.issue(&[SERVER], GOOD));
    write(dir.path(), "worker.key", &fleet.issue(&[SERVER], GOOD).key);
    let error = refused(&dir, Role::Worker);
    assert!(matches!(error, IdentityError::NotAPair { .. }), "{error}");
}
