// SPDX-License-Identifier: Apache-2.0

package macprefixes

// Severity says whether a Problem makes the database unusable.
type Severity string

const (
	// Error makes the database unusable.
	Error Severity = "error"
	// Warning is worth the author's attention and harms nothing.
	Warning Severity = "warning"
)

// The codes of problems. They are stable, so that documentation and tests can name them.
const (
	// CodeSyntax: the text is not one YAML document.
	CodeSyntax = "mac-yaml-syntax"
	// CodeShape: a value is not of the kind that belongs there, for example a list where a string belongs.
	CodeShape = "mac-shape"
	// CodeUnknownKey: the key means nothing here.
	CodeUnknownKey = "mac-unknown-key"
	// CodeDuplicateKey: the key appears twice in one mapping.
	CodeDuplicateKey = "mac-duplicate-key"
	// CodeMissingKey: a required key is absent or empty.
	CodeMissingKey = "mac-missing-key"
	// CodeUnquoted: YAML reads the unquoted value as a number, a boolean or a date.
	CodeUnquoted = "mac-unquoted"
	// CodePrefix: the prefix is not a usable MAC prefix.
	CodePrefix = "mac-prefix"
	// CodeDuplicatePrefix: the same prefix has two rows.
	CodeDuplicatePrefix = "mac-duplicate-prefix"
	// CodeValue: a value is outside the values that are allowed.
	CodeValue = "mac-value"
	// CodeInlineCredentials: credentials are written into the bundle in clear.
	CodeInlineCredentials = "mac-inline-credentials"
	// CodeLimit: the database is larger than metalaw reads.
	CodeLimit = "mac-limit"
)

// Problem is one finding about one place in the database.
type Problem struct {
	Severity Severity
	// Code is one of the constants above.
	Code string
	File string
	// Line and Column count from 1; 0 means that the finding is about the whole file.
	Line, Column int
	// Message says what is wrong; Hint says what to do about it.
	Message, Hint string
}
