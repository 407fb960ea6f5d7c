module m
contains
recursive integer function fib(n) result(r)
 integer, intent(in) :: n
 if (n < 2) then
  r = n
 else
  r = fib(n-1) + fib(n-2)
 end if
end function
subroutine work(n, x)
 integer, intent(in) :: n
 real(8), intent(inout) :: x(n)
 real(8) :: t(n), u(n,n)
 character(len=40) :: s
 integer :: i
 do i = 1, n
  t(i) = sin(x(i)) + i
  u(i,:) = x * t(i)
 end do
 x = matmul(u, t) / n
 write(s, '(f10.3,i6)') x(1), n
 read(s, '(f10.3)') x(2)
 call inner(3)
contains
 subroutine inner(k)
  integer, intent(in) :: k
  integer :: j
  do j = 1, k
   x(j) = x(j) + t(j)
  end do
 end subroutine
end subroutine
end module
program p
 use m
 real(8) :: x(8)
 integer :: i
 do i = 1, 8
  x(i) = i
 end do
 do i = 1, 3
  call work(8, x)
 end do
 if (fib(8) /= 21) stop 1
end program
