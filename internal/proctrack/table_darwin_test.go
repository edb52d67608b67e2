package proctrack

var realTable Table = System{}
