package verify
func (c *checker) checkLivelock() {}
