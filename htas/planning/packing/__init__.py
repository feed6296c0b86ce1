"""The task packer: which waiting work is placed first, and on which node (HTAS paper 4.3, 5.1)."""
