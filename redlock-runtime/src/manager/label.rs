//! Name of a process, which operators find in the client list of a server.

/// Longest label in bytes. It is part of the client name, which a server repeats in each entry of its client list.
const LONGEST: usize = 64;

/// Replacement for an unknown name.
const UNKNOWN: &str = "unknown";

/// Returns the error for a label that a server does not accept in the name of a client.
pub(super) fn fault(label: &str) -> Option<String> {
    let is_fit = !label.is_empty() && label.len() <= LONGEST && label.bytes().all(is_fit);
    (!is_fit).then(|| {
        format!(
            "the label {label:?} cannot be the name of a client: write 1 to {LONGEST} printable ASCII characters without \
             spaces and semicolons, such as \"order-service\""
        )
    })
}

/// Returns the error for an instance that a server does not accept in the name of a client.
pub(super) fn instance_fault(instance: &str) -> Option<String> {
    let is_fit = instance.len() <= LONGEST && instance.bytes().all(is_fit);
    (!is_fit).then(|| {
        format!(
            "the instance {instance:?} cannot be a part of the name of a client: write up to {LONGEST} printable ASCII \
             characters without spaces and semicolons, such as \"blue-3\""
        )
    })
}

/// Returns the name of a process: the label, or the name of the program, and behind it the instance. Without an instance, the host
/// and the process id follow, as in `order-service;host7;1234`. Only the label if the instance is empty.
pub(super) fn full(label: Option<&str>, instance: Option<&str>) -> String {
    let program = || std::env::current_exe().ok()?.file_stem()?.to_str().map(fitted);
    let label = label.map(str::to_owned).or_else(program).unwrap_or_else(|| UNKNOWN.to_owned());
    match instance {
        Some("") => label,
        Some(instance) => format!("{label};{instance}"),
        None => {
            let host = host().as_deref().map_or_else(|| UNKNOWN.to_owned(), fitted);
            format!("{label};{host};{}", std::process::id())
        }
    }
}

/// Turns `name` into a valid part of a label.
fn fitted(name: &str) -> String {
    let fitted = |c: char| u8::try_from(c).ok().filter(|byte| is_fit(*byte)).map_or('_', char::from);
    name.chars().take(LONGEST).map(fitted).collect()
}

/// Returns `true` if a server accepts this byte in a client name, and it does not end the label.
const fn is_fit(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b';'
}

#[cfg(unix)]
fn host() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

#[cfg(not(unix))]
fn host() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_client_names_are_accepted_as_labels() {
        let longest = "x".repeat(LONGEST);
        for label in ["order-service", "a", "eu/west:1.2[3]", &longest] {
            assert_eq!(fault(label), None, "{label}");
        }
        let longer = "x".repeat(LONGEST + 1);
        for label in ["", "order service", "a;b", "caf\u{e9}", "a\n", &longer] {
            assert!(fault(label).is_some_and(|fault| fault.contains(&format!("{label:?}"))), "{label}");
        }
    }

    #[test]
    fn full_label_contains_host_and_process_id() {
        let text = full(Some("shop"), None);
        let parts: Vec<_> = text.split(';').collect();
        assert!(
            matches!(parts[..], ["shop", host, id] if !host.is_empty() && id == std::process::id().to_string()),
            "{text}"
        );
        assert_eq!(full(None, None).split(';').count(), 3);
    }

    #[test]
    fn instance_replaces_host_and_process_id() {
        assert_eq!(full(Some("shop"), Some("blue-3")), "shop;blue-3");
        assert_eq!(full(Some("shop"), Some("")), "shop");
        assert_eq!((instance_fault(""), instance_fault("blue-3")), (None, None));
        for instance in ["a b", "a;b", &"x".repeat(LONGEST + 1)] {
            assert!(instance_fault(instance).is_some(), "{instance}");
        }
    }

    #[test]
    fn invalid_characters_of_program_names_are_replaced() {
        for (name, expected) in [("order-service", "order-service"), ("order service;\u{e9}", "order_service__")] {
            assert_eq!(fitted(name), expected);
        }
    }
}
