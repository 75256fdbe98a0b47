//! What is said to be legal is accepted, and what is not is refused, by the names of both keys.

use iofleet_coordinator::scenario::{Context, Source, load};

use crate::{
    support::{Scratch, iofleet, stderr, text},
    table::{Cell, cells, documented},
};

/// Keys of which two are named by the refusal of a cell.
fn keys_of(cell: &Cell) -> [&'static str; 2] {
    if cell.direct && ["mmap", "null"].contains(&&*cell.engine) {
        ["engine", "direct"]
    } else {
        ["layout", "engine"]
    }
}

#[test]
fn the_page_has_the_products_table() {
    let (product, page) = (cells(), documented());
    assert_eq!(product.len(), 5 * 6 * 2 * 8);
    assert_eq!(product, page);
}

#[test]
fn each_cell_is_accepted_or_refused_as_the_table_says() {
    let context = Context { local: true, workers_flag: None };
    let (mut accepted, mut refused) = (0, 0);
    for cell in cells() {
        let source = Source { name: "cell.toml".to_owned(), text: cell.scenario() };
        match (load(&source, &[], &context), &cell.why_not) {
            (Ok(scenario), None) => {
                assert_eq!(scenario.points.len(), 1);
                accepted += 1;
            }
            (Err(error), Some(_)) => {
                let lines = error.lines().join("\n");
                for key in keys_of(&cell) {
                    assert!(lines.contains(key), "{cell:?}: {key} is not named by {lines}");
                }
                refused += 1;
            }
            (found, _) => panic!("{cell:?}: {found:?}"),
        }
    }
    println!("{accepted} cells are accepted, {refused} refused");
    assert!(accepted > 0 && refused > 0);
}

#[test]
fn the_command_refuses_them_with_its_code() {
    let scratch = Scratch::new();
    let illegal: Vec<Cell> = cells().into_iter().filter(|cell| cell.why_not.is_some()).collect();
    // Five over the whole table.
    let step = illegal.len().div_ceil(5);
    for cell in illegal.iter().step_by(step) {
        let file = scratch.write("cell.toml", &cell.scenario());
        let output = iofleet().arg("plan").arg(&file).args(["--local", "2"]).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{cell:?}\n{}", text(&output));
        for key in keys_of(cell) {
            assert!(stderr(&output).contains(key), "{cell:?}: {key}\n{}", text(&output));
        }
    }
}
