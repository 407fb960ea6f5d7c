module d
 abstract interface
  integer function op(k)
   integer, intent(in) :: k
  end function
 end interface
contains
recursive integer function deep(n, f) result(r)
 integer, intent(in) :: n
 procedure(op) :: f
 integer :: a(n + 3)
 real(8), allocatable :: v(:)
 a = n
 allocate (v(n + 1), source = 1d0)
 r = f(n) + sum(a) + int(sum(v))
 if (n > 0) r = r + deep(n - 1, mine)
contains
 integer function mine(k)
  integer, intent(in) :: k
  mine = a(1) + k
  if (k > 2) mine = mine + f(k - 1)
 end function
end function
integer function one(k)
 integer, intent(in) :: k
 one = k
end function
end module
program p
 use d
 if (deep(7, one) == 0) stop 1
end program
