// SPDX-License-Identifier: Apache-2.0

package diag

var placementCodes = Group{
	Title: "Placement", About: "About the annotation policy.metalaw.dev/placement of a ServerClaim.",
	Codes: append(table(Error, `
placement-claims
	A spread does not say which claims it keeps apart.
	Add claims: with the labels of these claims, or make the claim part of a gang.
placement-empty
	The placement, or a list in it, asks for nothing.
	Take it out.
placement-gang
	A gang has a name that is none.
	Write lower-case letters, digits and dashes, at most 63.
placement-key
	A place cannot be told by this key.
	Write rack, zone, region or the key of a label of servers.
placement-number
	A number is none or out of its bounds, or a list is too long.
	Write it within the bounds that the finding names.
placement-selector
	A selector has no meaning, or asks for what no label can be.
	Write it as in spec.serverSelector.
placement-size
	The document is larger than metalaw reads.
	Combine conditions, and ask for one of several values with in.
`), table(Warning, `
placement-key-case
	The key of a spread is a label spelled like the fact rack, zone or region.
	Write the fact in lower-case letters, or leave it where servers do have such a label.
placement-no-effect
	Something in the placement changes nothing.
	Do what the finding says, or take it out.
`)...),
}
