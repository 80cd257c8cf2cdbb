// SPDX-License-Identifier: Apache-2.0

// Package record makes SanitizationRecords and checks their chain.
package record

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Name is the name of a machine's record with a sequence number. A second record of that number cannot be created, so that
// the chain of a machine never forks.
func Name(systemUUID string, sequence int64) string {
	return fmt.Sprintf("%s-%06d", systemUUID, sequence)
}

// Canonical is the JSON over which the hash of a record is made: the spec without its hash, with sorted keys, without spaces and
// without escapes for HTML.
func Canonical(spec policyv1alpha1.SanitizationRecordSpec) ([]byte, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	delete(fields, "hash")
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(fields); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Hash is the lower-case hex SHA-256 of the canonical JSON of a spec.
func Hash(spec policyv1alpha1.SanitizationRecordSpec) (string, error) {
	text, err := Canonical(spec)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Reference is what the inventory remembers of a record.
func Reference(r *policyv1alpha1.SanitizationRecord) *policyv1alpha1.RecordReference {
	return &policyv1alpha1.RecordReference{Name: r.Name, Sequence: r.Spec.Sequence, Hash: r.Spec.Hash}
}

// Verify says everything that is wrong with the records of any number of machines: a record whose content has another hash, one
// that is missing, and one that does not continue the record before it. The chain of a machine begins at sequence 1.
func Verify(records []policyv1alpha1.SanitizationRecord) error {
	machines := map[string][]policyv1alpha1.SanitizationRecord{}
	for _, r := range records {
		machines[r.Spec.Machine.SystemUUID] = append(machines[r.Spec.Machine.SystemUUID], r)
	}
	names := make([]string, 0, len(machines))
	for uuid := range machines {
		names = append(names, uuid)
	}
	slices.Sort(names)
	var found []error
	for _, uuid := range names {
		found = append(found, chain(uuid, machines[uuid])...)
	}
	return errors.Join(found...)
}

// Reaches says whether the records of a machine reach as far as its inventory remembers: without that, the last records could be
// taken away unseen. last may be nil.
func Reaches(records []policyv1alpha1.SanitizationRecord, last *policyv1alpha1.RecordReference) error {
	if last == nil {
		return nil
	}
	for i := range records {
		switch r := &records[i]; {
		case r.Spec.Sequence != last.Sequence:
		case r.Spec.Hash != last.Hash:
			return fmt.Errorf("record %s: its hash is %s, but the ServerInventory remembers %s", r.Name, r.Spec.Hash, last.Hash)
		default:
			return nil
		}
	}
	return fmt.Errorf("record %s is missing, which the ServerInventory remembers as the last", last.Name)
}

// chain checks the records of one machine.
func chain(uuid string, records []policyv1alpha1.SanitizationRecord) []error {
	slices.SortFunc(records, func(a, b policyv1alpha1.SanitizationRecord) int {
		return cmp.Or(cmp.Compare(a.Spec.Sequence, b.Spec.Sequence), cmp.Compare(a.Name, b.Name))
	})
	var found []error
	var before policyv1alpha1.SanitizationRecordSpec
	for i := range records {
		r := &records[i]
		switch hash, err := Hash(r.Spec); {
		case err != nil:
			found = append(found, fmt.Errorf("record %s: %w", r.Name, err))
		case hash != r.Spec.Hash:
			found = append(found, fmt.Errorf("record %s: its content has hash %s, but it states %s: it was changed", r.Name, hash, r.Spec.Hash))
		}
		if name := Name(uuid, r.Spec.Sequence); r.Name != name {
			found = append(found, fmt.Errorf("record %s: its content belongs to %s", r.Name, name))
		}
		switch next := before.Sequence + 1; {
		case r.Spec.Sequence < next:
			found = append(found, fmt.Errorf("record %s: there is another record with sequence %d", r.Name, r.Spec.Sequence))
		case r.Spec.Sequence > next:
			found = append(found, fmt.Errorf("machine %s: %s missing before %s", uuid, missing(next, r.Spec.Sequence-1), r.Name))
		case r.Spec.PreviousHash != before.Hash:
			found = append(found, fmt.Errorf("record %s: it continues hash %q, but the record before has %q",
				r.Name, r.Spec.PreviousHash, before.Hash))
		}
		before = r.Spec
	}
	return found
}

func missing(from, to int64) string {
	if from == to {
		return fmt.Sprintf("record %d is", from)
	}
	return fmt.Sprintf("records %d to %d are", from, to)
}
