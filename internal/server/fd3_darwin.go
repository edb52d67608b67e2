package server

// pollHangup: POLLHUP is always told.
const pollHangup = 0
