# Included by the Makefile.
kernels: ## run the kernel tests in machines with other kernels (qemu, busybox)
	@scripts/kernels $(ROW)

.PHONY: kernels
