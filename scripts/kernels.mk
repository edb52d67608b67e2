# Included by the Makefile.
kernels: ## run the kernel tests in machines with other kernels (qemu, busybox)
	@scripts/kernels $(ROW)

kernels-soak: ## thousands of executions under ceilings, in such machines (an hour and more)
	@scripts/kernels --soak $(ROW)

.PHONY: kernels kernels-soak
