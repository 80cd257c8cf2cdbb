// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/policies"
)

// doubtAgain is when to look again at a claim whose end waits for a user to compare its server.
const doubtAgain = 15 * time.Second

// inDoubtError says that a claim's end is not recorded, because its server is in doubt since the cluster's store was restored.
type inDoubtError struct{ server string }

func (e *inDoubtError) Error() string {
	return fmt.Sprintf("server %s is in doubt since the cluster's store was restored: another claim may have it by now. "+
		"Compare, then: metalaw restored --confirm %[1]s", e.server)
}

// inDoubt is an inDoubtError where one of the servers that a claim holds is in doubt; nil where none is.
func inDoubt(servers []*v1alpha1.Server, c *v1alpha1.ServerClaim) error {
	for _, s := range servers {
		ours := s.Annotations[v1alpha1.ClaimUIDAnnotation] == string(c.UID)
		if restored.Marked(s) && (ours || policies.RelationOf(s, c) == policies.Adoptable) {
			return &inDoubtError{server: s.Name}
		}
	}
	return nil
}
