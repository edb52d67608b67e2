#include "textflag.h"

// func rawInt80(nr, a, b, c uint32) int32
// The 32-bit entry of the kernel: the number is i386's, and so is the filter's view
// of the architecture (AUDIT_ARCH_I386), whatever this program was built for.
TEXT ·rawInt80(SB), NOSPLIT, $0-20
	MOVL nr+0(FP), AX
	MOVL a+4(FP), BX
	MOVL b+8(FP), CX
	MOVL c+12(FP), DX
	XORL SI, SI
	XORL DI, DI
	INT  $0x80
	MOVL AX, ret+16(FP)
	RET
