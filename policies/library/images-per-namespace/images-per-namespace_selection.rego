# No server goes to a claim whose image its namespace may not boot. Both rules follow the claim alone, and are evaluated once for it.
package metalaw.selection.images_per_namespace

import data.metalaw.lib.images_per_namespace as policy

rejects if not allowed

allowed if policy.allows(input.claim.namespace, input.claim.image)

message := policy.words(input.claim.namespace)
