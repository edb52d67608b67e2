package plan

// Name is an origin's place in the policy, for messages of tests.
func (o Origin) Name() string { return o.name() }
