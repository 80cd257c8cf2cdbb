// SPDX-License-Identifier: Apache-2.0

package diag

var macPrefixCodes = Group{
	Title: "MAC prefixes", About: "About macprefixes.yaml.",
	Codes: append(table(Error, `
mac-duplicate-key
	A row has the same key twice.
	Keep one of the two.
mac-duplicate-prefix
	A prefix has two rows; where both say the same it is a warning.
	Keep one of the two.
mac-limit
	The database is larger than metalaw reads.
	Keep the rows that the fleet needs.
mac-missing-key
	A key that a row must have is absent or empty.
	Add it.
mac-prefix
	A prefix is not 6 to 12 hexadecimal digits.
	Write it like "b0:7b:25".
mac-shape
	A list, a mapping or a single value stands where another of them belongs.
	Write what the finding asks for.
mac-unknown-key
	A key means nothing in a row.
	Correct its spelling; the finding lists the keys.
mac-unquoted
	YAML reads an unquoted value as a number, a boolean or a date: 001122 would be 594.
	Put it in quotes.
mac-value
	A value is not one of those that are allowed.
	Write one that the finding lists.
mac-yaml-syntax
	The text is not one YAML document.
	Correct the YAML.
`), table(Warning, `
mac-inline-credentials
	Credentials are written into the bundle in clear, readable by everyone who may read it.
	Keep them in a Secret and name it in credentialsSecretRef.
`)...),
}
