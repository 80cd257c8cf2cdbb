// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// read reads the files of the command line, in its order. What is wrong with single claims is kept with them.
func (r *attempt) read(ctx context.Context, in io.Reader) (documents, error) {
	if len(r.paths) == 0 {
		return documents{}, usage.Errorf("which claims? Name a file with -f, or - for standard input; see --help")
	}
	var all documents
	for i, path := range r.paths {
		if slices.Contains(r.paths[:i], path) {
			return documents{}, usage.Errorf("-f %s is given twice; name each file once", path)
		}
		docs, err := readFile(ctx, path, in)
		if err != nil {
			return documents{}, err
		}
		all.all, all.others = append(all.all, docs.all...), append(all.others, docs.others...)
	}
	return all, nil
}

// maxFile bounds what is read of one file.
const maxFile = 16 << 20

// readFile reads one file, or the standard input for -.
func readFile(ctx context.Context, path string, in io.Reader) (documents, error) {
	name := path
	switch path {
	case "":
		return documents{}, usage.Errorf("-f names no file; name one, or - for standard input; see --help")
	case "-":
		name = "<stdin>"
	}
	text, err := terminal.Read(ctx, path, in, maxFile)
	switch {
	case err != nil:
		return documents{}, fmt.Errorf("the file cannot be read: %w", err)
	case len(text) > maxFile:
		return documents{}, fmt.Errorf("%s has more than %d MiB, which is more than files of claims have; divide it", name, maxFile>>20)
	}
	docs, err := decode(name, text)
	if err == nil && len(docs.all) == 0 {
		err = fmt.Errorf("%s holds no ServerClaim", name)
	}
	return docs, err
}

// distinct refuses two claims of one name, of which only one could ever be stored; namespace is that of claims which name none.
func (d *documents) distinct(namespace string) error {
	first := map[types.NamespacedName]*document{}
	for i := range d.all {
		doc := &d.all[i]
		if doc.claim.Name == "" { // the API server makes a name for each
			continue
		}
		name := types.NamespacedName{Namespace: cmp.Or(doc.claim.Namespace, namespace), Name: doc.claim.Name}
		if other, found := first[name]; found {
			return usage.Errorf("claim %s is there twice, at %s and at %s: give one of them another name, or take it out",
				name, other.place(), doc.place())
		}
		first[name] = doc
	}
	return nil
}

// namespaces are those of the claims, each once; namespace is that of claims which name none.
func (d *documents) namespaces(namespace string) []string {
	var all []string
	for _, doc := range d.all {
		all = append(all, cmp.Or(doc.claim.Namespace, namespace))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
