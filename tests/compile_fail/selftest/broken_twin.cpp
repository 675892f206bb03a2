// Refused in both versions: the check must not take that for a proof.
#error "the expected message"
