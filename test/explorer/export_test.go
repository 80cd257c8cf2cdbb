// SPDX-License-Identifier: Apache-2.0

package explorer

// Knows says whether the explorer has a fact, and an effect, of these names.
func Knows(fact, effect string) (bool, bool) {
	_, ok := factOf[fact]
	return ok, known(effect)
}
