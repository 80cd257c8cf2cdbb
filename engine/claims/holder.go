// SPDX-License-Identifier: Apache-2.0

package claims

// Holder is what a server records of the claim that it is written for; the zero value where it is written for none.
type Holder struct {
	Claim Key
	UID   string
	// Ended: the release of the claim is recorded. Kept: it is, and the data stays on the machine until it is given up.
	Ended, Kept bool
}

// Relation says what a server's reference to a claim's name means for that claim.
type Relation uint8

const (
	// Unrelated says that the server names no claim, or one of another name.
	Unrelated Relation = iota
	// Holds says that the server names the claim and records its UID.
	Holds
	// Adoptable says that the server names the claim but records another UID or none, no release is recorded, and the claim's own
	// serverRef names the server. So look a claim restored from a backup and a binding made before us.
	Adoptable
	// Another says that the server names a claim of that name, but means another one; this one inherits nothing.
	Another
)

// RelationOf says what a server's record means for a claim.
func (h Holder) RelationOf(server string, c *Claim) Relation {
	switch {
	case h.Claim != c.Key:
		return Unrelated
	case h.UID == c.UID:
		return Holds
	case c.ServerRef == server && !h.Ended:
		return Adoptable
	default:
		return Another
	}
}

// Has says that a server is written for a claim whose release is not recorded.
func (h Holder) Has(server string, c *Claim) bool {
	return h.RelationOf(server, c) == Holds && !h.Ended
}

// Held counts the servers that are written for claims of a namespace, as its quota does. A claim whose release is recorded does not
// count; one that is gone without a release does, because its server is kept for it.
type Held struct {
	Servers int
	// Orphaned are those of them whose claim is known to be gone.
	Orphaned int
}
